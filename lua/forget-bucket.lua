-- Forgets a bucket, so that its key starts anew.
--
-- KEYS[1]  the bucket
-- ARGV[1]  the number of the call
-- Reply    1 if there was one, else 0; and the number of the call

return { redis.call('UNLINK', KEYS[1]), ARGV[1] }
