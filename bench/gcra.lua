-- The script that applications call by EVALSHA today: GCRA on Redis' own clock, in microseconds.
-- The key holds the TAT. KEYS[1]; ARGV: burst, count, period in seconds, cost.
-- Returns limited, limit, remaining, retry_after, reset_after.
local burst, cost = tonumber(ARGV[1]), tonumber(ARGV[4])
local interval = tonumber(ARGV[3]) * 1000000 / tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local tat = tonumber(redis.call('GET', KEYS[1]) or now)
if tat < now then tat = now end
local new_tat = tat + cost * interval
local over = new_tat - burst * interval - now
if over > 0 then
    return {1, burst, math.floor((burst * interval - (tat - now)) / interval), math.ceil(over / 1000), math.ceil((tat - now) / 1000)}
end
redis.call('SET', KEYS[1], string.format('%.0f', new_tat), 'PX', math.ceil((new_tat - now) / 1000))
return {0, burst, math.floor(-over / interval), -1, math.ceil((new_tat - now) / 1000)}
