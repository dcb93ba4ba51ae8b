# An application with redis-rb: ruby redis_rb.rb PORT busy|idle RETRIES
require 'redis'

$stdout.sync = true
port, role, retries = ARGV
REDIS = Redis.new(host: '127.0.0.1', port: port.to_i, reconnect_attempts: retries.to_i, reconnect_delay: 0.1,
                  reconnect_delay_max: 0.5)

def attempt
  yield
rescue Redis::BaseConnectionError, Redis::CommandError => e
  kind = e.is_a?(Redis::BaseConnectionError) ? Redis::BaseConnectionError : e.class
  puts "error #{kind} #{e.message}"
  sleep 0.02
  nil
end

def busy
  last = 0
  until attempt { REDIS.get('stop') }
    n = attempt { REDIS.incr('n') }
    if n
      puts(n > last ? 'ok' : "#{n} after #{last}")
      last = n
    end
    sleep 0.005
  end
end

def idle
  popped = nil
  until popped == 'end'
    _, popped = attempt { REDIS.blpop('q', timeout: 0) }
    puts "popped #{popped}" if popped
  end
end

role == 'busy' ? busy : idle
