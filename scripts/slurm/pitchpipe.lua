-- pitchpipe: the submission plugin. It reads the #TUNE lines of a batch script at sbatch.
--
-- It refuses what is surely wrong: quoting, unknown blocks and keys, a key given twice, a word
-- that a key does not take. The controller judges the rest. For a job with a stanza it writes
-- two things:
--
--     admin_comment   the word pitchpipe:1:-, behind what others wrote
--     PITCHPIPE_JOB   in the environment, 2:live:NAME=#|WORD;NAME=#: the variables that the task
--                     prolog may set, each to a number (#) or a word, and "live" where a knob is
--                     live, "action" where the job offers actions; 2:: where the mode is not apply or the comment says pitchpipe:off
--
-- A job without a stanza keeps every field. Any error here is logged, and the job is accepted
-- as it was. The plugin does no I/O and stops after a bounded amount of work, so that slurmctld
-- never waits for it. Lua 5.1 to 5.4.

local keys = require("pitchpipe_keys")

local pitchpipe = {}

local most_head = 65536   -- bytes before the first command; a longer script is the controller's
local most_late = 1048576 -- bytes that are searched for #TUNE lines behind the first command
local most_shown = 20     -- faults that the user is shown
local most_work = 5e6     -- instructions of the interpreter: some 0.1 s of CPU, less than 0.5 s

local VARIABLE, RECORD, NOTHING, OFF = "PITCHPIPE_JOB", "pitchpipe:1:", "2::", "pitchpipe:off"

local function quote(s) return '"' .. s:gsub('["\\]', "\\%0") .. '"' end

-- tune_line reads one #TUNE line from byte i on: a block with its keys. It raises the first
-- fault as a table.
local function tune_line(line, number, i)
  local block = { kind = "", label = "", line = number, column = 1, attrs = {} }
  local function fail(column, found, want)
    error({ line = number, column = column, found = found, want = want }, 0)
  end
  local function char() return line:sub(i, i) end
  local function at_blank() return i > #line or line:find("^[ \t]", i) ~= nil end
  local function take(pattern)
    local text = line:match(pattern, i)
    i = i + #text
    return text
  end

  -- In double quotes \" and \\ are the only escapes; in single quotes there is none.
  local function quoted()
    local start, parts = i, {}
    local mark = take("^['\"]")
    while i <= #line do
      parts[#parts + 1] = take(mark == "'" and "^[^']*" or '^[^"\\]*')
      local c = char()
      if c == mark then
        i = i + 1
        return table.concat(parts)
      elseif c == "\\" then
        local escaped = line:match('^["\\]', i + 1)
        if not escaped then
          fail(i, "a backslash in double quotes", [[want \" or \\, or single quotes, in which everything is literal]])
        end
        parts[#parts + 1], i = escaped, i + 2
      end
    end
    fail(start, "the quote " .. mark .. " is not closed", "want the closing quote on the same line")
  end

  local function element()
    local start = i
    if line:find("^['\"]", i) then return { column = start, text = quoted(), quoted = true } end
    local text = take("^[^ \t,'\"]*")
    if line:find("^['\"]", i) then fail(i, "a quote inside a bare value", "want quotes around the whole value") end
    return { column = start, text = text }
  end

  -- A value is one element, or several with commas between them.
  local function value(name)
    if name == "" then fail(i, "an equals sign without a key", "want key=value without blanks around the equals sign") end
    local items = {}
    repeat
      i = i + 1
      items[#items + 1] = element()
    until char() ~= ","
    if not at_blank() then
      fail(i, "the character '" .. char() .. "' behind a closing quote", "want quotes around the whole value")
    end
    for _, item in ipairs(items) do
      if item.text == "" and not item.quoted and #items == 1 then
        fail(i, "no value behind " .. name .. "=", "want a value without a blank before it")
      elseif item.text == "" and not item.quoted then
        fail(item.column, "an empty element in a list", "want values with one comma between them and no blanks")
      end
    end
    return items
  end

  while take("^[ \t]*") and i <= #line do
    local start = i
    local name = take("^[^ \t='\"]*")
    if char() == "=" then
      local at = i + 1
      block.attrs[#block.attrs + 1] = { name = name, line = number, column = start, value_at = at, items = value(name) }
    elseif not at_blank() then
      fail(i, "the character '" .. char() .. "' in the name of a key", "want key=value")
    elseif block.kind == "" and #block.attrs == 0 then
      block.kind, block.column = name, start
    elseif block.kind ~= "" and block.label == "" and #block.attrs == 0 then
      block.label, block.label_at = name, start
    else
      fail(start, "the word " .. quote(name) .. " where a key is expected",
        "want key=value without blanks around the equals sign; quote values that hold blanks")
    end
  end
  return block
end

-- looks_like reports whether a comment has the form of a #TUNE line but begins otherwise.
local function looks_like(line)
  local head = line:match("^#[ \t]*[Tt][Uu][Nn][Ee]:?[ \t]+([a-z][^=]*)=") or line:match("^#[ \t]*TUNE:?([a-z][^=]*)=")
  return head ~= nil and head:find("[a-z_]$") ~= nil and select(2, head:gsub("[^ \t]+", "")) <= 3
end

-- read returns the blocks of a script, nil where it has none, then the faults of its lines,
-- then warnings: what is perhaps not meant for this script. It returns false for a script
-- that is too long.
local function read(text)
  local blocks, faults, warnings = nil, {}, {}
  local from, number = 1, 0
  local function note(list, column, found, want)
    list[#list + 1] = { line = number, column = column, found = found, want = want }
  end
  while from <= #text do
    local stop = text:find("\n", from, true) or #text + 1
    if stop > most_head then return false end
    number = number + 1
    local line = text:sub(from, stop - 1):gsub("\r$", "")
    local blanks, rest = line:match("^([ \t]*)(.*)$")
    if rest == "#TUNE" or rest:find("^#TUNE[ \t]") then
      if blanks ~= "" then
        note(faults, #blanks + 1, "#TUNE behind blanks", "want it at the start of the line")
      else
        local ok, block = pcall(tune_line, line, number, 6)
        if not ok and type(block) ~= "table" then error(block, 0) end
        blocks = blocks or {}
        local into = ok and blocks or faults
        into[#into + 1] = block
      end
    elseif looks_like(line) then
      note(warnings, 1, "a comment that looks like a tuning line", "want #TUNE and a blank, in capitals and without a blank behind #")
    elseif rest ~= "" and rest:sub(1, 1) ~= "#" then -- the first command
      local behind = text:sub(stop, stop + most_late) .. "\n"
      local at, _, indent = behind:find("\n([ \t]*)#TUNE[ \t\r\n]")
      if at then
        number = number + select(2, behind:sub(1, at):gsub("\n", ""))
        note(blocks and faults or warnings, #indent + 1, "#TUNE behind the first command", "want it before the first command, where #SBATCH lines may stand")
      end
      break
    end
    from = stop + 1
  end
  return blocks, faults, warnings
end

-- merged brings the lines of one block together; the first block is the top level.
local function merged(blocks)
  local out, by = {}, {}
  table.insert(blocks, 1, { kind = "", label = "", attrs = {} })
  for _, block in ipairs(blocks) do
    local name = block.kind .. "\n" .. block.label
    if not by[name] then
      by[name], out[#out + 1] = block, block
    else
      for _, attr in ipairs(block.attrs) do table.insert(by[name].attrs, attr) end
    end
  end
  return out
end

-- text is the value of a key that takes one; a list has none.
local function text_of(attr) return attr and #attr.items == 1 and attr.items[1].text or "" end

-- check adds the faults of a block, and names its keys: block.key.
local function check(block, faults)
  local function fail(at, column, found, want)
    faults[#faults + 1] = { line = at.line, column = column, found = found, want = "want " .. want }
  end
  local known = keys.blocks[block.kind]
  block.key = {}
  if not known then
    return fail(block, block.column, "unknown block " .. quote(block.kind) .. " in the tuning stanza", keys.want)
  elseif (block.kind == "knob" or block.kind == "action") and not block.label:find("^[A-Za-z][A-Za-z0-9_-]*$") then
    local one = (block.kind == "knob" and "a " or "an ") .. block.kind
    local found = block.label == "" and one .. " without a name" or one .. " with the name " .. quote(block.label)
    return fail(block, block.label_at or block.column, found, "a name of letters, digits, _ and - that begins with a letter")
  elseif block.kind ~= "knob" and block.kind ~= "action" and block.label ~= "" then
    fail(block, block.label_at, "the name " .. quote(block.label) .. " of the " .. block.kind .. " block", "no name: only knobs and actions have one")
  end
  for _, attr in ipairs(block.attrs) do
    local key = known.keys[attr.name]
    if not key then
      local where = block.kind == "" and "the tuning stanza" or "the " .. block.kind .. " block"
      fail(attr, attr.column, "unknown key " .. quote(attr.name) .. " in " .. where, known.want)
    elseif block.key[attr.name] then
      fail(attr, attr.column, attr.name .. " is given twice", "it once: the first is at line " .. block.key[attr.name].line)
    else
      block.key[attr.name] = attr
      if key.words and not key.words[text_of(attr)] then
        local found = #attr.items > 1 and "a list" or quote(text_of(attr):sub(1, 80))
        fail(attr, attr.value_at, attr.name .. " is " .. found, key.want)
      end
    end
  end
end

local function is_number(s)
  local digits, exponent = s:match("^[+-]?([0-9.]+)(.*)$")
  return digits and digits:find("[0-9]") and not digits:find("%..*%.") and (exponent == "" or exponent:find("^[eE][+-]?[0-9]+$"))
end

-- allowed lists what a knob may be set to: # for any number, and words. Words that no
-- variable is given are left out.
local function allowed(knob)
  local number, out = nil, {}
  for _, attr in ipairs(knob.attrs) do
    if attr.name == "values" or attr.name == "min" or attr.name == "max" or attr.name == "default" then
      for _, item in ipairs(attr.items) do
        if keys.amounts[knob.label] or is_number(item.text) then
          number = "#"
        elseif item.text ~= "" and not item.text:find(keys.other_bytes) then
          out[#out + 1] = item.text
        end
      end
    end
  end
  if number then table.insert(out, 1, number) end
  return table.concat(out, "|")
end

local function mark(blocks)
  local names, knobs, live = {}, {}, ""
  local mode = text_of(blocks[1].key.mode)
  for _, block in ipairs(blocks) do
    if block.kind == "search" and not blocks[1].key.mode then -- its default
      mode = (not block.key.system or text_of(block.key.system) == "pipelined") and "apply" or "observe"
    end
  end
  if mode ~= "apply" then return NOTHING end
  for _, block in ipairs(blocks) do
    if block.kind == "knob" then knobs[block.label] = block end
  end
  for _, block in ipairs(blocks) do
    local env, follows, set = text_of(block.key.env), text_of(block.key.follows), ""
    local leader = follows == "" and block or knobs[follows]
    if leader and (leader == block or text_of(leader.key.follows) == "") then set = allowed(leader) end
    if env:find("^[A-Za-z_][A-Za-z0-9_]*$") then names[#names + 1] = env .. "=" .. set end
    if block.kind == "action" then
      live = "action"
    elseif live == "" and text_of(block.key.live) == "true" then
      live = "live"
    end
  end
  return "2:" .. live .. ":" .. table.concat(names, ";")
end

-- examine returns the faults and warnings of a script, and without faults the mark of its
-- stanza; nil for a script that is too long.
function pitchpipe.examine(text)
  local blocks, faults, warnings = read(text)
  if blocks == false then return nil, text:find("#TUNE", 1, true) and "the script is too long to be judged at submission" end
  if blocks and #faults == 0 then
    blocks = merged(blocks)
    for _, block in ipairs(blocks) do check(block, faults) end
    table.sort(faults, function(a, b) return a.line < b.line or a.line == b.line and a.column < b.column end)
  end
  return { faults = faults, warnings = warnings, mark = blocks and #faults == 0 and mark(blocks) or nil }
end

-- say shows the user why. Users wrote part of the text: the format is another argument, and
-- only printable ASCII is shown.
local function say(list, verdict)
  if #list == 0 then return end
  slurm.log_user("%s", "pitchpipe: " .. verdict)
  for i, fault in ipairs(list) do
    if i > most_shown then return slurm.log_user("%s", "pitchpipe: and " .. #list - most_shown .. " more") end
    local text = string.format("pitchpipe: line %d, column %d: %s; %s", fault.line, fault.column, fault.found, fault.want)
    slurm.log_user("%s", (text:gsub("[^ -~]", "?")))
  end
end

-- apply writes the record and the mark: both, or neither. Other words of the comment stay.
local function apply(job_desc, mark)
  local before, kept = job_desc.admin_comment, {}
  for word in (before or ""):gmatch("%S+") do
    if word:sub(1, #RECORD) ~= RECORD then kept[#kept + 1] = word end
  end
  for word in (job_desc.comment or ""):gmatch("%S+") do
    if word == OFF then mark = NOTHING end
  end
  if not job_desc.environment then error("the job has no environment") end
  job_desc.admin_comment = table.concat(kept, " ") .. (#kept > 0 and " " or "") .. RECORD .. "-"
  local ok, why = pcall(function() job_desc.environment[VARIABLE] = mark end)
  if not ok then
    job_desc.admin_comment = before or ""
    error(why, 0)
  end
end

local function guarded(job_desc, on_fault)
  if type(job_desc.script) ~= "string" then return slurm.SUCCESS end -- srun and salloc
  local found, why = pitchpipe.examine(job_desc.script)
  if why then slurm.log_info("%s", "pitchpipe: " .. why) end
  if not found then return slurm.SUCCESS end
  local rejected = #found.faults > 0 and on_fault == "reject"
  say(found.faults, "the tuning stanza has faults, the job is " .. (rejected and "not submitted:" or "submitted and runs untuned:"))
  if rejected then return slurm.ERROR end
  say(found.warnings, "the job is submitted without these lines:")
  if found.mark then apply(job_desc, found.mark) end
  return slurm.SUCCESS
end

-- submit is called once for each submission, with the choice "reject" or "warn" for a faulty
-- stanza. It returns slurm.SUCCESS or slurm.ERROR, and never raises an error.
function pitchpipe.submit(job_desc, on_fault)
  local hook = debug and debug.sethook
  if hook then hook(function() hook(); error("pitchpipe: too much work for one job", 0) end, "", most_work) end
  local ok, result = pcall(guarded, job_desc, on_fault)
  if hook then hook() end
  if ok then return result end
  pcall(function() slurm.log_error("%s", "pitchpipe: the job is accepted as it is: " .. tostring(result)) end)
  return 0 -- slurm.SUCCESS, whatever became of that table
end

return pitchpipe
