# Jobs with Sidekiq: ruby sidekiq_jobs.rb PORT worker|producer. The producer reads lines "NUMBER SECONDS".
port, role = ARGV
exec({ 'PORT' => port }, 'sidekiq', '-c', '2', '-q', 'default', '-r', __FILE__) if role == 'worker'

require 'sidekiq'

$stdout.sync = true
url = { url: "redis://127.0.0.1:#{ENV.fetch('PORT', port)}" }
Sidekiq.configure_server { |config| config.redis = url }
Sidekiq.configure_client { |config| config.redis = url }

class Work
  include Sidekiq::Worker

  def perform(number, seconds)
    puts "begun #{number}"
    sleep seconds
    puts "done #{number}"
  end
end

def enqueue(number, seconds)
  Work.perform_async(number, seconds)
  puts "enqueued #{number}"
rescue Redis::BaseConnectionError => e
  puts "error Redis::BaseConnectionError #{e.message}"
  sleep 0.05
  retry
end

if role == 'producer'
  $stdin.each_line do |line|
    number, seconds = line.split
    enqueue(number.to_i, seconds.to_f)
  end
end
