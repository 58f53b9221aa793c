-- pitchpipe_script reads what a batch script says before anything of it runs:
-- its #TUNE lines as a tree of blocks, and the variables that it sets at its top.
--
-- The rules are those of `pitchpipe validate`: #TUNE lines count at the start of a
-- line before the first command; a value is bare, in single quotes (literal) or in
-- double quotes (\" and \\ are the only escapes); commas outside of quotes separate
-- the elements of a list; nothing is expanded and no line is continued. The one
-- difference is that text is not brought to Unicode's normal form.
--
-- It does no I/O and its work is bounded by the limits below; no pattern in it
-- takes more than linear time. Lua 5.1 to 5.4.

local environ = require("pitchpipe_environ")
local words = require("pitchpipe_words")

local script = {}

local quote = words.quote

-- Scripts beyond these limits are left to the controller.
script.most_head = 65536   -- bytes before the first command, and of assignments behind
script.most_line = 8192    -- bytes of a #TUNE line
script.most_tune = 256     -- #TUNE lines
script.most_late = 1048576 -- bytes that are searched for #TUNE lines that stand too late

local function quote_char(c)
  if c == "'" or c == "\\" then return "'\\" .. c .. "'" end
  return "'" .. c .. "'"
end

local function is_blank(c) return c == " " or c == "\t" end

-- A scanner walks over one #TUNE line.
local Scanner = {}
Scanner.__index = Scanner

function Scanner:char() return self.line:sub(self.i, self.i) end

function Scanner:skip()
  self.i = self.line:find("[^ \t]", self.i) or #self.line + 1
  return self.i <= #self.line
end

function Scanner:at_blank()
  return self.i > #self.line or is_blank(self:char())
end

function Scanner:pos(i) return { line = self.number, column = i } end

function Scanner:fail(i, found, want)
  if not self.fault then self.fault = { at = self:pos(i), found = found, want = want } end
end

-- Reads up to an equals sign, a quote or a blank.
function Scanner:name()
  local start = self.i
  self.i = self.line:find("[ \t='\"]", start) or #self.line + 1
  return self.line:sub(start, self.i - 1)
end

function Scanner:quoted()
  local mark, start = self:char(), self.i
  if mark == "'" then
    local last = self.line:find("'", start + 1, true)
    if last then
      self.i = last + 1
      return self.line:sub(start + 1, last - 1)
    end
  else
    local parts, i = {}, start + 1
    while true do
      local stop = self.line:find('["\\]', i)
      if not stop then break end
      parts[#parts + 1] = self.line:sub(i, stop - 1)
      if self.line:sub(stop, stop) == '"' then
        self.i = stop + 1
        return table.concat(parts)
      end
      local escaped = self.line:sub(stop + 1, stop + 1)
      if escaped ~= '"' and escaped ~= "\\" then
        self:fail(stop, "a backslash in double quotes", [[want \" or \\, or single quotes, in which everything is literal]])
        return ""
      end
      parts[#parts + 1] = escaped
      i = stop + 2
    end
  end
  self.i = #self.line + 1
  self:fail(start, "the quote " .. mark .. " is not closed", "want the closing quote on the same line")
  return ""
end

-- Reads one bare or quoted element.
function Scanner:element()
  local c = self:char()
  if c == "'" or c == '"' then return { kind = "string", text = self:quoted() } end
  local start = self.i
  self.i = self.line:find("[ \t,'\"]", start) or #self.line + 1
  c = self:char()
  if c == "'" or c == '"' then self:fail(self.i, "a quote inside a bare value", "want quotes around the whole value") end
  return { kind = "bare", text = self.line:sub(start, self.i - 1) }
end

-- Reads the value behind the equals sign: one element, or several with commas
-- between them.
function Scanner:value(name)
  if name == "" then
    self:fail(self.i, "an equals sign without a key", "want key=value without blanks around the equals sign")
  end
  self.i = self.i + 1
  local at, items = self:pos(self.i), {}
  while true do
    local item_at = self:pos(self.i)
    items[#items + 1] = { at = item_at, value = self:element() }
    if self.fault or self:char() ~= "," then break end
    self.i = self.i + 1
  end
  if not self.fault and not self:at_blank() then
    self:fail(self.i, "the character " .. quote_char(self:char()) .. " behind a closing quote", "want quotes around the whole value")
  end
  if #items == 1 then
    local v = items[1].value
    if v.kind == "bare" and v.text == "" then
      self:fail(self.i, "no value behind " .. name .. "=", "want a value without a blank before it")
    end
    return v, at
  end
  for _, item in ipairs(items) do
    if item.value.kind == "bare" and item.value.text == "" then
      self:fail(item.at.column, "an empty element in a list", "want values with one comma between them and no blanks")
    end
  end
  return { kind = "list", list = items }, at
end

-- Reads one #TUNE line from byte i on. A line with a fault is left out as a whole,
-- so that one fault is one message.
local function tune_line(number, line, i)
  local s = setmetatable({ line = line, i = i, number = number }, Scanner)
  local block = { kind = "", label = "", at = s:pos(1), attrs = {} }
  local first = true
  while s:skip() do
    local start = s.i
    local name = s:name()
    if s:char() == "=" then
      local value, value_at = s:value(name)
      block.attrs[#block.attrs + 1] = { name = name, at = s:pos(start), value = value, value_at = value_at }
    elseif not s:at_blank() then
      s:fail(s.i, "the character " .. quote_char(s:char()) .. " in the name of a key", "want key=value")
    elseif first then
      block.kind, block.at = name, s:pos(start)
    elseif block.kind ~= "" and block.label == "" and #block.attrs == 0 then
      block.label, block.label_at = name, s:pos(start)
    else
      s:fail(start, "the word " .. quote(name) .. " where a key is expected",
        "want key=value without blanks around the equals sign; quote values that hold blanks")
    end
    if s.fault then return nil, s.fault end
    first = false
  end
  return block
end

-- Adds what a line says to the stanza. Keys that were there before are kept twice:
-- to judge them is not our work here.
local function merge(stanza, block)
  local into
  if block.kind == "" then
    into = stanza
  else
    for _, old in ipairs(stanza.blocks) do
      if old.kind == block.kind and old.label == block.label then into = old end
    end
  end
  if not into then
    stanza.blocks[#stanza.blocks + 1] = block
    return
  end
  for _, attr in ipairs(block.attrs) do into.attrs[#into.attrs + 1] = attr end
end

-- Tells whether a line, from byte i on, is "#TUNE" and nothing longer.
local function is_tune(line, i)
  if line:sub(i, i + 4) ~= "#TUNE" then return false end
  local c = line:sub(i + 5, i + 5)
  return c == "" or is_blank(c)
end

-- Finds #TUNE lines from byte start on, which is where line number begins.
local function late_lines(text, start, number, faults)
  local last = math.min(#text, start + script.most_late)
  local counted, from = start, start
  if not text:find("#TUNE", start, true) then return end
  while #faults < script.most_tune do
    local hash = text:find("#TUNE", from, true)
    if not hash or hash > last then return end
    from = hash + 5
    local after = text:sub(from, from + 1)
    if after == "" or after:find("^[ \t\n]") or after == "\r\n" or after == "\r" then
      local begin = hash
      while begin > start and is_blank(text:sub(begin - 1, begin - 1)) do begin = begin - 1 end
      if begin == start or text:sub(begin - 1, begin - 1) == "\n" then
        local newline = text:find("\n", counted, true)
        while newline and newline < hash do
          number, counted = number + 1, newline + 1
          newline = text:find("\n", counted, true)
        end
        faults[#faults + 1] = {
          at = { line = number, column = hash - begin + 1 }, late = true,
          found = "#TUNE behind the first command", want = "want it before the first command, where #SBATCH lines may stand",
        }
      end
    end
  end
end

-- Reads a script. Returns nil where it is too long to be read here, else a table:
--   stanza  the tree, nil where there is none
--   faults  what could not be read, in the order of the lines; late ones stand
--           behind the first command
--   env     the variables that the script's top gives a value
--   fixed   name → line of those that it sets whatever its environment says
function script.read(text)
  local variables = environ.reader()
  local out = { faults = {}, env = variables.env, fixed = variables.fixed }
  local begun, reading, tunes = false, true, 0
  local from, number = 1, 0
  while from <= #text + 1 and (reading or not begun) do
    local stop = text:find("\n", from, true) or #text + 1
    if stop > script.most_head then return nil end
    number = number + 1
    local raw = text:sub(from, stop - 1)
    local line = raw:gsub("\r$", "")
    if not begun then
      local start = line:find("[^ \t]")
      if start and is_tune(line, start) then
        tunes = tunes + 1
        if #line > script.most_line or tunes > script.most_tune then return nil end
        if start > 1 then
          out.faults[#out.faults + 1] = {
            at = { line = number, column = start },
            found = "#TUNE behind blanks", want = "want it at the start of the line",
          }
        else
          local block, fault = tune_line(number, line, 6)
          if block then
            out.stanza = out.stanza or { kind = "", label = "", attrs = {}, blocks = {}, at = block.at }
            merge(out.stanza, block)
          else
            out.faults[#out.faults + 1] = fault
          end
        end
      elseif start and line:sub(start, start) ~= "#" then
        begun = true
        late_lines(text, stop + 1, number + 1, out.faults)
      end
    end
    if reading then reading = variables:line(raw, number) end
    from = stop + 1
  end
  return out
end

return script
