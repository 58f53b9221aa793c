-- pitchpipe: the tuning stanza of a batch script, met at submission.
--
-- A site calls pitchpipe.submit from slurm_job_submit of its own job_submit.lua:
--
--     local found, pitchpipe = pcall(require, "pitchpipe")
--     ...
--     if found then
--       local called, rc = pcall(function() return pitchpipe.submit(job_desc, "reject") end) -- or "warn"
--       if rc == slurm.ERROR then return rc end
--     end
--
-- It judges the #TUNE lines of the script. A faulty stanza is refused with a message
-- for the user ("reject"), or submitted untuned with the same message ("warn"). For
-- a good one it writes two things, and nothing else:
--
--     admin_comment               a word pitchpipe:1:{...}, the stanza as JSON without
--                                 blanks, or pitchpipe:1:- where that would be longer
--                                 than most_record bytes
--     environment PITCHPIPE_JOB   2:live:NAME=#|WORD;NAME=#, the variables that the task
--                                 prolog may set, each to a number (#) or one of the
--                                 words, and "live" where a knob is live; 2:: where the
--                                 mode is not apply or the owner's comment says off
--
-- A job without a stanza is not touched in any field. A fault of this module, of any
-- kind, is logged and the job is accepted as it was. It does no I/O, and stops after
-- a bounded amount of work. Lua 5.1 to 5.4.

local judge = require("pitchpipe_judge")
local keys = require("pitchpipe_keys")
local script = require("pitchpipe_script")
local value = require("pitchpipe_value")
local words = require("pitchpipe_words")

local pitchpipe = {}

pitchpipe.most_record = 4096 -- bytes of the record in admin_comment
pitchpipe.most_shown = 20    -- faults that the user is shown
pitchpipe.most_work = 5e6    -- instructions of the interpreter for one job: some 0.1 s of CPU, less than 0.5 s

local VARIABLE = "PITCHPIPE_JOB"
local PREFIX = "pitchpipe:"
local VERSION = "1"       -- of the record
local NOTHING = "2::"     -- the mark of a job in which nothing may be set
local OFF = "pitchpipe:off"

-- json_text writes a text in printable ASCII without blanks, so that the record is
-- one word wherever Slurm prints it.
local function json_text(s)
  local out, i = {}, 1
  local function unit(code) out[#out + 1] = string.format("\\u%04x", code) end
  while i <= #s do
    local a, b, c, d = s:byte(i, i + 3)
    if a < 128 then
      local char = string.char(a)
      if char == '"' or char == "\\" then
        out[#out + 1] = "\\" .. char
      elseif a <= 32 or a == 127 then
        unit(a)
      else
        out[#out + 1] = char
      end
      i = i + 1
    elseif a < 224 then
      unit((a - 192) * 64 + (b - 128))
      i = i + 2
    elseif a < 240 then
      unit((a - 224) * 4096 + (b - 128) * 64 + (c - 128))
      i = i + 3
    else
      local code = (a - 240) * 262144 + (b - 128) * 4096 + (c - 128) * 64 + (d - 128) - 65536
      unit(55296 + math.floor(code / 1024))
      unit(56320 + code % 1024)
      i = i + 4
    end
  end
  return '"' .. table.concat(out) .. '"'
end

local function is_list(block, name)
  for _, key in ipairs(keys.keys) do
    if key.block == block and key.name == name then return key.type == "values" end
  end
  return false
end

local function json_attr(block, attr)
  local v = attr.value
  if v.kind == "list" and is_list(block, attr.name) then
    local parts = {}
    for i, item in ipairs(v.list) do parts[i] = json_text(item.value.text) end
    return json_text(attr.name) .. ":[" .. table.concat(parts, ",") .. "]"
  end
  return json_text(attr.name) .. ":" .. json_text(judge.single(v).text)
end

-- record writes a stanza that was found good as the JSON that `pitchpipe validate`
-- reads as well.
local function record(stanza)
  local top, knobs = {}, {}
  for _, attr in ipairs(stanza.attrs) do top[#top + 1] = json_attr("", attr) end
  for _, b in ipairs(stanza.blocks) do
    local inner = {}
    for _, attr in ipairs(b.attrs) do inner[#inner + 1] = json_attr(b.kind, attr) end
    local name = b.kind == "knob" and b.label or b.kind
    local text = json_text(name) .. ":{" .. table.concat(inner, ",") .. "}"
    if b.kind == "knob" then knobs[#knobs + 1] = text else top[#top + 1] = text end
  end
  if #knobs > 0 then top[#top + 1] = '"knob":{' .. table.concat(knobs, ",") .. "}" end
  local json = "{" .. table.concat(top, ",") .. "}"
  if #json > pitchpipe.most_record then json = "-" end
  return PREFIX .. VERSION .. ":" .. json
end

local function mark(read, knobs)
  local names, live, mode = {}, "", nil
  for _, attr in ipairs(read.stanza.attrs) do
    if attr.name == "mode" then mode = judge.single(attr.value).text end
  end
  if mode ~= "apply" then return NOTHING end
  for _, k in ipairs(knobs) do
    local allowed = {}
    if k.number then allowed[1] = k.number end
    for _, word in ipairs(k.words) do allowed[#allowed + 1] = word end
    if k.env then names[#names + 1] = k.env .. "=" .. table.concat(allowed, "|") end
    if k.live then live = "live" end
  end
  return "2:" .. live .. ":" .. table.concat(names, ";")
end

-- examine judges the text of a script. Returns nil where there is no stanza or it is
-- too long to be judged here, else a table with faults, and for a good stanza the
-- record and the mark.
function pitchpipe.examine(text)
  if not text:find("#TUNE", 1, true) then return nil end
  local read = script.read(text)
  if not read then return nil, "the script is too long to be judged at submission" end
  local faults, knobs = judge.judge(read)
  if #faults > 0 then
    local late = true -- only lines behind the first command: perhaps not meant for this script
    for _, fault in ipairs(faults) do late = late and fault.late end
    return { faults = faults, late = late and not read.stanza }
  end
  if not read.stanza then return nil end
  return { faults = {}, record = record(read.stanza), mark = mark(read, knobs) }
end

-- say shows the user why; the format is a separate argument because the text holds
-- what the user wrote.
local function say(faults, verdict)
  slurm.log_user("%s", string.format("pitchpipe: %d %s in the tuning stanza, %s", #faults, #faults == 1 and "fault" or "faults", verdict))
  for i, fault in ipairs(faults) do
    if i > pitchpipe.most_shown then
      slurm.log_user("%s", string.format("pitchpipe: and %d more", #faults - pitchpipe.most_shown))
      break
    end
    local text = fault.found
    if fault.want and fault.want ~= "" then text = text .. "; " .. fault.want end
    if not value.printable(text) then text = words.quote(text:gsub("[\128-\255]", "?")) end
    slurm.log_user("%s", string.format("pitchpipe: line %d, column %d: %s", fault.at.line, fault.at.column, text))
  end
end

-- others returns an admin comment without records of ours.
local function others(comment)
  local kept = {}
  for word in (comment or ""):gmatch("%S+") do
    if word:sub(1, #PREFIX) ~= PREFIX then kept[#kept + 1] = word end
  end
  if #kept == 0 then return "" end
  return table.concat(kept, " ") .. " "
end

-- apply writes the record and the mark: both, or neither.
local function apply(job_desc, good)
  local before = job_desc.admin_comment
  local comment = others(before) .. good.record
  if not job_desc.environment then error("the job has no environment") end
  job_desc.admin_comment = comment
  local mark = good.mark
  for word in (job_desc.comment or ""):gmatch("%S+") do
    if word == OFF then mark = NOTHING end
  end
  local ok, why = pcall(function() job_desc.environment[VARIABLE] = mark end)
  if not ok then
    job_desc.admin_comment = before or ""
    error(why, 0)
  end
end

local function guarded(job_desc, on_fault)
  local text = job_desc.script
  if type(text) ~= "string" then return slurm.SUCCESS end -- srun and salloc
  local found, why = pitchpipe.examine(text)
  if why then slurm.log_info("pitchpipe: %s", why) end
  if not found then return slurm.SUCCESS end
  if #found.faults == 0 then
    apply(job_desc, found)
    return slurm.SUCCESS
  end
  if on_fault == "reject" and not found.late then
    say(found.faults, "the job is not submitted:")
    return slurm.ERROR
  end
  say(found.faults, "the job is submitted and runs untuned:")
  return slurm.SUCCESS
end

-- submit is called once for each submission, with the choice "reject" or "warn" for
-- a faulty stanza. Returns slurm.SUCCESS or slurm.ERROR, and never raises an error.
function pitchpipe.submit(job_desc, on_fault)
  local hook = debug and debug.sethook
  if hook then
    hook(function() hook(); error("pitchpipe: too much work for one job", 0) end, "", pitchpipe.most_work)
  end
  local ok, result = pcall(guarded, job_desc, on_fault)
  if hook then hook() end
  if ok then return result end
  pcall(function() slurm.log_error("%s", "pitchpipe: the job is accepted as it is: " .. tostring(result)) end)
  return 0 -- slurm.SUCCESS, whatever became of that table
end

return pitchpipe
