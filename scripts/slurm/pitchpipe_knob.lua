-- pitchpipe_knob judges the knobs of a stanza: how each reaches the job, what it may be
-- set to, its untuned value, and what knobs say about each other.
--
-- It does no I/O and changes nothing that it is given but the judge's list of faults.
-- Lua 5.1 to 5.4.

local keys = require("pitchpipe_keys")
local value = require("pitchpipe_value")
local words = require("pitchpipe_words")

local knob = {}

local contains, did_you_mean, one_of, quote = words.contains, words.did_you_mean, words.one_of, words.quote

local function allowed(name)
  for _, key in ipairs(keys.keys) do
    if key.block == "knob" and key.name == name then return key.allowed end
  end
  error("no key " .. name)
end

local function given(f, name) return f.data[name] ~= nil or f.bad[name] == true end

local function is_system(name) return contains(keys.system, name) ~= nil end
local function is_count(name) return contains(keys.counts, name) ~= nil end

-- Reads the text of a value by the name of its knob: a float, a word, or nil.
local function parse(name, s)
  local n = value.number(s)
  local whole = n and n == math.floor(n) and n <= keys.limits.count
  if name == "cores" or name == "threads" then return whole and n >= 1 and n or nil end
  if name == "gpus" then return whole and n >= 0 and n or nil end
  if name == "memory" then
    local b = value.bytes(s)
    return b and b > 0 and b or nil
  end
  if name == "power_limit" then
    local w = value.number(value.trim((s:gsub("W$", ""))))
    return w and w > 0 and w or nil
  end
  if n then return n end
  return value.trim(s) ~= "" and not s:find(keys.denied.bytes) and s or nil
end

local function value_rule(name)
  return keys.rules[name] or keys.rules[""]
end

local function spell(name, v)
  if type(v) == "string" then return v end
  if name == "memory" then
    for _, unit in ipairs({ { "TiB", 1099511627776 }, { "GiB", 1073741824 }, { "MiB", 1048576 }, { "KiB", 1024 } }) do
      if v % unit[2] == 0 then return string.format("%.0f", v / unit[2]) .. unit[1] end
    end
    return string.format("%.0f", v) .. "B"
  end
  if v == math.floor(v) and math.abs(v) < 1e15 then return string.format("%.0f", v) end
  return (string.format("%.15g", v):gsub(",", "."))
end

-- Judges one value, and notes in k what the task prolog may set: numbers, and these words.
local function judge_value(j, k, item)
  local name = k.name
  local v = item.value
  if v.kind ~= "list" and value.printable(v.text) then
    local parsed = parse(name, v.text)
    if type(parsed) == "string" then k.words[#k.words + 1] = parsed end
    if type(parsed) == "number" then k.number = "#" end
    if parsed then return parsed end
  end
  j:fail(item.at, "a value of " .. name .. " is " .. j.describe(v), "want " .. value_rule(name))
  return nil
end

local function is_knob_name(s)
  return #s <= keys.limits.name and s:find("^[A-Za-z][A-Za-z0-9_-]*$") ~= nil
end

local function judge_env(j, d)
  local want = "want " .. allowed("env")
  if not d.text:find("^[A-Za-z_][A-Za-z0-9_]*$") then
    j:fail(d.at, "env is " .. quote(d.text), want)
    return
  end
  local denied = false
  for _, entry in ipairs(keys.denied.names) do
    local prefix = entry:match("^(.*)%*$")
    denied = denied or d.text == entry or prefix ~= nil and d.text:sub(1, #prefix) == prefix
  end
  if denied then
    j:fail(d.at, "env is " .. quote(d.text) .. ", which is never set by the tuner", want)
    return
  end
  local line = j.script.fixed[d.text]
  if line then
    j:fail(d.at, "the script itself sets " .. d.text .. " at line " .. line .. ", which would undo the knob",
      "want " .. d.text .. "=${" .. d.text .. ":-" .. (j.script.env[d.text] or "") .. "} there")
  end
end

local function judge_arg(j, d)
  local dashes, name = d.text:match("^(%-*)(.*)$")
  if name == "" or #dashes < 1 or #dashes > 2 or not name:find("^[A-Za-z][A-Za-z0-9_.-]*$") then
    j:fail(d.at, "arg is " .. quote(d.text), "want " .. allowed("arg"))
    return
  end
  j:fail(d.key, "arg in a batch script", "want env: a script has no command line of its own that could be changed")
end

-- Judges how the value reaches the job; carriers holds what other knobs use.
local function judge_carrier(j, k, f, at, carriers)
  local used = {}
  for _, name in ipairs({ "env", "arg" }) do
    if given(f, name) then used[#used + 1] = name end
    local d = f.data[name]
    if d then
      local id = name .. " " .. d.text
      if carriers[id] then
        j:fail(d.at, id .. " carries the knob " .. quote(carriers[id]) .. " already", "want each to carry one knob")
      end
      carriers[id] = k.name
      k[name] = d.text
      if name == "env" then judge_env(j, d) else judge_arg(j, d) end
    end
  end
  if (f.data.live and f.data.live.flag) or f.bad.live then
    k.live = true
    used[#used + 1] = "live"
  end
  if #used > 1 then
    j:fail(at, "the knob " .. quote(k.name) .. " has " .. table.concat(used, " and "), "want one way for the value to reach the job")
  elseif #used == 0 and not is_system(k.name) and not f.strange then
    local want = "want env=NAME or live=true, which say how the value reaches the job"
    local near = words.nearest(k.name, keys.system)
    if near then want = want .. "; did you mean the system knob " .. quote(near) .. "?" end
    j:fail(at, "nothing carries the hyperparameter " .. quote(k.name) .. " to the job", want)
  end
end

local function judge_bound(j, k, d)
  if not d then return nil end
  local v = judge_value(j, k, d.items[1])
  if type(v) == "string" then
    j:fail(d.at, "a bound of " .. quote(k.name) .. " is the word " .. quote(v), "want a number")
    return nil
  end
  return v
end

local function judge_values(j, k, d)
  local seen = {}
  for _, item in ipairs(d.items) do
    local v = judge_value(j, k, item)
    if v ~= nil then
      if seen[v] then
        j:fail(item.at, "the value " .. spell(k.name, v) .. " stands twice", "want different values")
      else
        seen[v] = true
      end
    end
  end
end

-- Judges what the knob may be set to.
local function judge_span(j, k, f, at)
  local data = f.data
  if data.follows then k.follows = data.follows.text end
  if given(f, "follows") then
    for _, name in ipairs({ "quality", "values", "min", "max", "scale", "default" }) do
      if data[name] then
        j:fail(data[name].key, name .. " of a knob that follows another",
          "want only its carrier: it has the values of the knob that it follows")
      end
    end
    return
  end
  if data.values and (data.min or data.max) then
    j:fail(data.values.key, "values beside min and max", "want one of them")
  elseif f.strange then
    -- what is missing is most likely what the unknown keys meant
  elseif not given(f, "values") and not given(f, "min") and not given(f, "max") then
    j:fail(at, "the knob " .. quote(k.name) .. " has no values", "want values, min and max, or follows")
  elseif given(f, "min") ~= given(f, "max") and not data.values then
    j:fail(at, "the knob " .. quote(k.name) .. " has only one of min and max", "want both")
  end
  if data.values then
    judge_values(j, k, data.values)
    if data.scale then j:fail(data.scale.key, "scale beside values", "want it only with min and max") end
    return
  end
  local low, high = judge_bound(j, k, data.min), judge_bound(j, k, data.max)
  if low and high and low >= high then
    j:fail(data.max.at, "max is " .. spell(k.name, high) .. " and min is " .. spell(k.name, low), "want min below max")
  end
  if data.scale and data.scale.text ~= keys.linear and low and low <= 0 then
    j:fail(data.min.at, "min is " .. spell(k.name, low) .. " with the scale " .. data.scale.text, "want min above 0")
  end
end

-- Judges the value of the knob where nobody tunes.
local function judge_untuned(j, k, f, at)
  local d = f.data.default
  if given(f, "follows") then return end
  if d and (k.name == "cores" or k.name == "memory") then
    j:fail(d.key, "default of " .. k.name, "want none: it is what the job asks its scheduler for")
  elseif d then
    judge_value(j, k, d.items[1])
  elseif not is_system(k.name) and not f.strange and (k.env or k.arg or k.live) then
    local shown = k.env and j.script.env[k.env]
    if not shown or shown:find("${", 1, true) or parse(k.name, shown) == nil then
      j:fail(at, "the untuned value of " .. quote(k.name) .. " is not known",
        "want default, or the value in the job file's own env or args")
    end
  end
end

-- Judges the knob that another one follows.
local function judge_follows(j, k, all, f)
  local d = f.data.follows
  if not d then return end
  local names, target = {}, nil
  for _, other in ipairs(all) do
    if other.name ~= k.name then names[#names + 1] = other.name end
    if other.name == d.text then target = other end
  end
  if target then k.number, k.words = target.number, target.words end
  if d.text == k.name then
    j:fail(d.at, "the knob " .. quote(k.name) .. " follows itself", "want another knob")
  elseif not target then
    local want = "want another knob of this stanza"
    if #names > 0 then want = want .. ": " .. one_of(names) .. did_you_mean(d.text, names) end
    j:fail(d.at, "follows is " .. quote(d.text) .. ", which is no knob here", want)
  elseif target.follows then
    j:fail(d.at, "follows is " .. quote(d.text) .. ", which follows another knob itself",
      "want " .. quote(target.follows) .. ", or another knob that follows none")
  elseif is_system(k.name) and not (is_count(k.name) and is_count(d.text)) then
    j:fail(d.at, "the system knob " .. quote(k.name) .. " follows " .. quote(d.text),
      "want one that counts the same: " .. one_of(keys.counts) .. ", which follow each other")
  end
end

-- Judges every knob, then what they say about each other.
function knob.judge(j, blocks)
  local out, read, first, carriers = {}, {}, {}, {}
  for _, b in ipairs(blocks) do
    local at = b.label ~= "" and b.label_at or b.at
    if first[b.label] and b.label ~= "" then
      j:fail(at, "the knob " .. quote(b.label) .. " is given twice", "the first is at " .. j.place(first[b.label]))
    else
      first[b.label] = at
      if not is_knob_name(b.label) then
        local found = b.label == "" and "a knob without a name" or "a knob with the name " .. quote(b.label)
        j:fail(at, found, "want a name of letters, digits, _ and - that begins with a letter")
      else
        local f = j:read(b)
        local k = { name = b.label, words = {} }
        judge_carrier(j, k, f, at, carriers)
        judge_span(j, k, f, at)
        judge_untuned(j, k, f, at)
        out[#out + 1], read[#read + 1] = k, f
      end
    end
  end
  for i, k in ipairs(out) do judge_follows(j, k, out, read[i]) end
  return out
end

return knob
