# A cluster client sends all commands to weir, which poses as a cluster of one node:
# ruby cluster_behind.rb PORT ROUNDS
require 'redis'

port, rounds = ARGV

def same(found, wanted)
  return if found == wanted

  puts "error #{found.inspect} instead of #{wanted.inspect}"
  exit 1
end

cluster = Redis.new(cluster: ["redis://127.0.0.1:#{port}"])
keys = (0...100).map { |i| "k#{i}" }
rounds.to_i.times do |round|
  word = round.to_s
  keys.each do |key|
    same(cluster.set(key, word), 'OK')
    same(cluster.get(key), word)
  end
  same(cluster.multi { |multi| multi.set('{t}a', word); multi.get('{t}a') }, ['OK', word])
  puts 'ok'
  $stdout.flush
end
