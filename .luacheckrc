-- What Redis gives a script, on top of Lua 5.1.
std = "lua51"
read_globals = { "redis", "cjson", "cmsgpack", "struct", "bit", "KEYS", "ARGV" }
max_line_length = 120
