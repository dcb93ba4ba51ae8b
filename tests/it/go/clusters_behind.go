// Cluster clients send all commands to weir, which poses as a cluster of one node:
// clusters_behind PORT ROUNDS
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"
	goredis "gopkg.in/redis.v5"
)

const nKeys = 100

func must(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

func same(found, wanted string) {
	if found != wanted {
		must(fmt.Errorf("%q instead of %q", found, wanted))
	}
}

func key(i int) string { return fmt.Sprintf("k%d", i) }

func withRedisc(address string, rounds int) {
	cluster := &redisc.Cluster{StartupNodes: []string{address}, DialOptions: []redis.DialOption{redis.DialConnectTimeout(5 * time.Second)}}
	defer cluster.Close()
	must(cluster.Refresh())
	for round := 0; round < rounds; round++ {
		word := strconv.Itoa(round)
		for i := 0; i < nKeys; i++ {
			conn := cluster.Get() // a connection that follows no redirects: it would hide them
			_, err := conn.Do("SET", key(i), word)
			must(err)
			found, err := redis.String(conn.Do("GET", key(i)))
			must(err)
			same(found, word)
			must(conn.Close())
		}
		fmt.Println("ok")
	}
}

func withGoRedis(address string, rounds int) {
	cluster := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{address}, MaxRedirects: 1})
	defer cluster.Close()
	for round := 0; round < rounds; round++ {
		word := strconv.Itoa(round)
		pipe := cluster.Pipeline()
		for i := 0; i < nKeys; i++ {
			pipe.Set(key(i), word, 0)
		}
		_, err := pipe.Exec()
		must(err)
		for i := 0; i < nKeys; i++ {
			found, err := cluster.Get(key(i)).Result()
			must(err)
			same(found, word)
		}
		n, err := cluster.Incr("{t}n" + word).Result()
		must(err)
		same(strconv.FormatInt(n, 10), "1")
		fmt.Println("ok")
	}
}

func main() {
	address := "127.0.0.1:" + os.Args[1]
	rounds, err := strconv.Atoi(os.Args[2])
	must(err)
	withRedisc(address, rounds)
	withGoRedis(address, rounds)
}
