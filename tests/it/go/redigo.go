// An application with redigo: redigo PORT busy|idle
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"
)

var pool = &redis.Pool{
	MaxIdle:     2,
	IdleTimeout: time.Minute,
	Dial:        func() (redis.Conn, error) { return redis.Dial("tcp", "127.0.0.1:"+os.Args[1]) },
	TestOnBorrow: func(conn redis.Conn, since time.Time) error {
		if time.Since(since) < time.Second {
			return nil
		}
		_, err := conn.Do("PING")
		return err
	},
}

func attempt(command string, args ...interface{}) (interface{}, error) {
	conn := pool.Get()
	defer conn.Close()
	reply, err := redis.DoWithTimeout(conn, 0, command, args...)
	if err != nil {
		fmt.Println("error", err)
		time.Sleep(20 * time.Millisecond)
	}
	return reply, err
}

func busy() {
	var last int64
	for {
		stop, err := attempt("GET", "stop")
		if err == nil && stop != nil {
			return
		}
		if n, err := redis.Int64(attempt("INCR", "n")); err == nil {
			if n > last {
				fmt.Println("ok")
			} else {
				fmt.Println(n, "after", last)
			}
			last = n
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func idle() {
	for {
		if found, err := redis.Strings(attempt("BLPOP", "q", 0)); err == nil {
			fmt.Println("popped", found[1])
			if found[1] == "end" {
				return
			}
		}
	}
}

func main() {
	if os.Args[2] == "busy" {
		busy()
	} else {
		idle()
	}
}
