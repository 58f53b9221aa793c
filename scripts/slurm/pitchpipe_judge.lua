-- pitchpipe_judge judges the tuning stanza of a batch script by the generated
-- table of keys, as `pitchpipe validate` does: every fault at once, with its line
-- and column. Regular expressions are left to the controller: a pattern is taken
-- for one that compiles and has the groups that it needs.
--
-- It does no I/O and changes nothing that it is given. Lua 5.1 to 5.4.

local keys = require("pitchpipe_keys")
local knob = require("pitchpipe_knob")
local value = require("pitchpipe_value")
local words = require("pitchpipe_words")

local judge = {}
local contains, did_you_mean, one_of, quote = words.contains, words.did_you_mean, words.one_of, words.quote

local function where(block)
  if block == "" then return "the tuning stanza" end
  return "the " .. block .. " block"
end

local function keys_of(block)
  local out = {}
  for _, key in ipairs(keys.keys) do
    if key.block == block then out[#out + 1] = key end
  end
  return out
end

local function names_of(list)
  local out = {}
  for _, key in ipairs(list) do out[#out + 1] = key.name end
  return out
end

local function key_of(block, name)
  for _, key in ipairs(keys.keys) do
    if key.block == block and key.name == name then return key end
  end
  return nil
end

local function describe(v)
  if v.kind == "list" then return "a list" end
  if #v.text > 80 then return "a long text" end
  return quote(v.text)
end

-- Joins a bare list for a key that wants one text: there a comma is only a comma.
local function single(v)
  if v.kind ~= "list" then return v end
  local parts = {}
  for i, item in ipairs(v.list) do
    if item.value.kind ~= "bare" then return v end
    parts[i] = item.value.text
  end
  return { kind = "bare", text = table.concat(parts, ",") }
end
judge.single = single

local function place(at) return "line " .. at.line end

local Judge = { describe = describe, place = place }
Judge.__index = Judge

function Judge:fail(at, found, want)
  self.faults[#self.faults + 1] = { at = at, found = found, want = want }
end

local texts = { text = true, pattern = true, flag = true, ["knob name"] = true, variable = true, signal = true }

-- Reads d.text as the type of the key and tells whether it is one.
local function read_scalar(d, key)
  if key.type == "word" then return contains(key.words, d.text) ~= nil end
  if texts[key.type] then return d.text ~= "" end
  if key.type == "number" or key.type == "integer" then
    if key.words and contains(key.words, d.text) then return true end
    d.number = value.number(d.text)
    if not d.number then return false end
    local whole = key.type == "number" or d.number == math.floor(d.number)
    return whole and d.number >= key.low and d.number <= key.high
  end
  if key.type == "boolean" then
    d.flag = d.text == "true"
    return d.flag or d.text == "false"
  end
  if key.type == "time" then
    d.duration = value.duration(d.text)
    return d.duration ~= nil and d.duration > 0
  end
  if key.type == "energy" then
    local joules = value.joules(d.text)
    return joules ~= nil and joules > 0
  end
  error("a key of the unknown type " .. tostring(key.type))
end

-- Reads the value of a key; found says what stands there instead of what it wants.
local function read_value(key, attr)
  local d = { key = attr.at, at = attr.value_at }
  if key.type == "value" then
    d.items = { { at = attr.value_at, value = single(attr.value) } }
    return d
  end
  if key.type == "values" then
    d.items = { { at = attr.value_at, value = attr.value } }
    if attr.value.kind == "list" then d.items = attr.value.list end
    return d
  end
  local v = single(attr.value)
  local found = key.name .. " is " .. describe(v)
  if v.kind == "list" or not value.printable(v.text) then return d, found end
  d.text = v.text
  if not read_scalar(d, key) then return d, found end
  return d
end

function Judge:unknown_key(block, attr, known)
  if block.kind == "" and attr.name ~= "" and contains(keys.blocks, attr.name) then
    local spelling = attr.name == "knob" and "#TUNE knob NAME key=value" or "#TUNE " .. attr.name .. " key=value"
    self:fail(attr.at, attr.name .. " is a block, not a key", "want " .. spelling)
    return
  end
  local suggestion = did_you_mean(attr.name, known)
  if suggestion == "" then -- a key that stands in the wrong block
    for _, key in ipairs(keys.keys) do
      if key.name == attr.name then
        suggestion = "; " .. key.name .. " belongs to " .. where(key.block)
        break
      end
    end
  end
  self:fail(attr.at, "unknown key " .. quote(attr.name) .. " in " .. where(block.kind), "want " .. one_of(known) .. suggestion)
end

-- Reads the keys of a block by the table: data holds the readable ones, bad those
-- that stand there and are not, and strange says that unknown ones stand there,
-- which most likely are what is missing.
function Judge:read(block)
  local known = keys_of(block.kind)
  local names = names_of(known)
  local f = { data = {}, bad = {}, strange = false }
  local first = {}
  for _, attr in ipairs(block.attrs) do
    local i = contains(names, attr.name)
    if not i then
      self:unknown_key(block, attr, names)
      f.strange = true
    elseif first[attr.name] then
      self:fail(attr.at, attr.name .. " is given twice", "the first is at " .. place(first[attr.name]))
    else
      first[attr.name] = attr.at
      local d, found = read_value(known[i], attr)
      if found then
        self:fail(attr.value_at, found, "want " .. known[i].allowed .. did_you_mean(d.text, known[i].words))
        f.bad[attr.name] = true
      else
        f.data[attr.name] = d
      end
    end
  end
  return f
end

local function given(f, name) return f.data[name] ~= nil or f.bad[name] == true end

function Judge:unknown_block(block)
  local top = names_of(keys_of(""))
  if contains(top, block.kind) then
    self:fail(block.at, block.kind .. " is a key, not a block", "want #TUNE " .. key_of("", block.kind).line)
    return
  end
  local known = {}
  for _, name in ipairs(keys.blocks) do
    if name ~= "" then known[#known + 1] = name end
  end
  local suggestion = did_you_mean(block.kind, known)
  if suggestion == "" then suggestion = did_you_mean(block.kind, top) end
  self:fail(block.at, "unknown block " .. quote(block.kind) .. " in the tuning stanza", "want " .. one_of(known) .. suggestion)
end

function Judge:top(f)
  if f.data.weight and not f.bad.objective then
    local objective = f.data.objective and f.data.objective.text or keys.defaults.objective
    if objective ~= keys.blend then
      self:fail(f.data.weight.key, "weight with the objective " .. objective, "want it only with the objective " .. keys.blend)
    end
  end
end

-- Returns whether a quality can be reported, nil where only the pattern knows.
function Judge:progress(b)
  if not b then return false end
  local f = self:read(b)
  local reports = f.data.report ~= nil and f.data.report.flag
  if f.data.pattern and reports then
    self:fail(f.data.report.key, "report beside pattern", "want one of them")
  elseif not given(f, "pattern") and not reports and not f.bad.report and not f.strange then
    self:fail(b.at, "progress without a source", "want pattern, or report = true")
  elseif f.data.file and reports then
    self:fail(f.data.file.key, "file beside report", "want file only with pattern")
  end
  if reports then return true end
  if f.data.pattern or f.bad.pattern or f.strange then return nil end
  return false
end

function Judge:quality(b, reported)
  if not b then return end
  local f = self:read(b)
  if not given(f, "direction") and not f.strange then
    self:fail(b.at, "quality without a direction", "want direction max or min")
  end
  if reported == false then
    self:fail(b.at, "quality that the job does not report", "want the group quality in the pattern of progress, or report = true there")
  end
end

function Judge:checkpoint(b)
  if not b then return end
  local f = self:read(b)
  local signal, grace = f.data.signal, f.data.grace
  if signal then
    local name = "SIG" .. signal.text:gsub("^SIG", "", 1)
    if name == "SIGKILL" or name == "SIGSTOP" then
      self:fail(signal.at, "signal is " .. quote(signal.text), "want one that a job can catch, such as SIGUSR1 or SIGTERM")
    elseif not contains(keys.signals, name) then
      self:fail(signal.at, "signal is " .. quote(signal.text),
        "want a known one such as SIGUSR1, SIGUSR2 or SIGTERM" .. did_you_mean(name, keys.signals))
    end
  end
  if grace and grace.duration > keys.limits.grace then
    self:fail(grace.at, "grace is " .. grace.text, "want " .. key_of("checkpoint", "grace").allowed)
  end
  if not given(f, "exit") and not given(f, "done") and not f.strange then
    self:fail(b.at, "checkpoint without a sign that the job has saved", "want exit or done")
  end
end

local function sorted(faults)
  for i, fault in ipairs(faults) do fault.order = i end
  table.sort(faults, function(a, b)
    if a.at.line ~= b.at.line then return a.at.line < b.at.line end
    if a.at.column ~= b.at.column then return a.at.column < b.at.column end
    if a.found ~= b.found then return a.found < b.found end
    return a.order < b.order
  end)
  return faults
end

-- Judges what pitchpipe_script.read returned. Returns the faults in the order of
-- their places, and the knobs with their carriers.
function judge.judge(read)
  if #read.faults > 0 then return sorted(read.faults), {} end
  local j = setmetatable({ script = read, faults = {} }, Judge)
  if not read.stanza then return j.faults, {} end
  local knobs, blocks = {}, {}
  j:top(j:read(read.stanza))
  for _, b in ipairs(read.stanza.blocks) do
    if b.kind == "" or not contains(keys.blocks, b.kind) then
      j:unknown_block(b)
    else
      if b.kind == "knob" then
        knobs[#knobs + 1] = b
      elseif blocks[b.kind] then
        j:fail(b.at, b.kind .. " is given twice", "the first is at " .. place(blocks[b.kind].at))
      else
        blocks[b.kind] = b
      end
      if b.kind ~= "knob" and b.label ~= "" then
        j:fail(b.label_at, "the name " .. quote(b.label) .. " of the " .. b.kind .. " block", "want no name: only knobs have one")
      end
    end
  end
  local out = knob.judge(j, knobs)
  local reported = j:progress(blocks.progress)
  j:quality(blocks.quality, reported)
  if blocks.profile then j:read(blocks.profile) end
  j:checkpoint(blocks.checkpoint)
  if blocks.budget then j:read(blocks.budget) end
  return sorted(j.faults), out
end

return judge
