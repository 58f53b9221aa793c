-- Runs a job_submit.lua as Slurm does, with a stub of Slurm's table, for the script on
-- the input, and prints what it did. Arguments: the job_submit.lua, then words: what
-- is strange about this job.
local strange = {}
for i = 2, #arg do strange[arg[i]] = true end

local function say(kind)
  return function(...) print(kind, (string.format(...):gsub("\n", " "))) end
end

slurm = {
  SUCCESS = 0, ERROR = -1,
  log_error = say("error"), log_info = say("info"), log_debug = say("debug"), log_verbose = say("verbose"), log_user = say("user"),
}
if strange.mute then slurm.log_user = function() error("log_user is out of order") end end
if strange.deaf then slurm.log_error = nil end

local fields = { admin_comment = strange.commented and "site=7 pitchpipe:1:{} x" or nil, comment = strange.off and "a pitchpipe:off" or nil }
if not strange.interactive then fields.script = io.read("*a") end
local environment = setmetatable({}, {
  __newindex = function(_, name, value)
    if strange.readonly then error("environment is read-only") end
    print("environment", name .. "=" .. value)
  end,
})
if not strange.bare then fields.environment = environment end
local job_desc = setmetatable({}, {
  __index = function(_, name) return fields[name] end,
  __newindex = function(_, name, value)
    fields[name] = value
    print("field", name .. "=" .. tostring(value))
  end,
})

dofile(arg[1])
print("modify", slurm_job_modify(job_desc, {}, {}, 0))
local began = os.clock()
print("submit", slurm_job_submit(job_desc, {}, 1000))
if strange.timed then print("seconds", string.format("%.3f", os.clock() - began)) end
