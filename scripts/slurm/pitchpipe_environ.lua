-- pitchpipe_environ reads the variables that a batch script sets at its top, without
-- running it: comments, blank lines, assignments, and lines that begin with set, ulimit,
-- umask, cd, module, : or true are read, and the first other line ends the reading. A
-- value is read if it is a literal, or ${NAME:-default} or ${NAME-default}.
--
-- It does no I/O; no pattern in it takes more than linear time. Lua 5.1 to 5.4.

local environ = {}

local function is_blank(c) return c == " " or c == "\t" end

local function leading_name(s, i) return s:match("^[A-Za-z_][A-Za-z0-9_]*", i) or "" end

-- Reads ${NAME:-default} and ${NAME-default} with a literal default.
local function reference(s)
  local inner = s:match("^%${(.*)}$")
  if not inner then return nil end
  local name = leading_name(inner)
  if name == "" then return nil end
  local fallback = inner:sub(#name + 1):match("^:?%-(.*)$")
  if not fallback or fallback:find("[%${}`\\'\"]") then return nil end
  return name, fallback
end

-- Finds the end of a word: a blank or an operator outside of quotes and braces.
local function word_end(text, i)
  local depth, mark = 0, nil
  while i <= #text do
    local c = text:sub(i, i)
    if mark then
      if c == mark then mark = nil end
    elseif c == "'" or c == '"' then
      mark = c
    elseif c == "\\" then
      i = i + 1
    elseif c == "{" or c == "(" then
      depth = depth + 1
    elseif c == "}" or c == ")" then
      depth = depth - 1
    elseif depth <= 0 and c:find("[ \t|&;<>]") then
      return i
    end
    i = i + 1
  end
  return math.min(i, #text + 1)
end

-- Reads one value from byte i on without expanding it; returns the value, where it
-- ends, and whether it is one literal or one reference with a default.
local function shell_value(text, i)
  local c = text:sub(i, i)
  if c == "'" or c == '"' then
    local close = text:find(c, i + 1, true)
    if not close then return "", #text + 1, false end
    local value, stop = text:sub(i + 1, close - 1), close + 1
    local whole = stop > #text or is_blank(text:sub(stop, stop))
    local is_default = reference(value) ~= nil
    if c == "'" then return value, word_end(text, stop), whole and not is_default end
    return value, word_end(text, stop), whole and (is_default or not value:find("[%$`\\]"))
  end
  local stop = word_end(text, i)
  local value = text:sub(i, stop - 1)
  if reference(value) then return value, stop, true end
  return value, stop, not value:find("[%$`\\'\"%*%?%[~{]")
end

local passed = { set = true, ulimit = true, umask = true, cd = true, module = true, ["true"] = true }

-- A variables reader: env holds what is known, fixed what the script sets whatever
-- its environment says.
local Variables = {}
Variables.__index = Variables

-- Changes one entry and remembers what was there, for a line that turns out to be
-- the environment of one command only.
function Variables:put(of, name, value)
  self.undo[#self.undo + 1] = { of, name, of[name] }
  of[name] = value
end

function Variables:assign(name, value, readable, number)
  local from, fallback = reference(value)
  local was_fixed = from and self.fixed[from]
  self:put(self.fixed, name, nil)
  if not readable then
    self:put(self.env, name, nil)
    return
  end
  if not from then
    self:put(self.env, name, value)
    self:put(self.fixed, name, number)
    return
  end
  if self.env[from] then
    fallback = self.env[from]
  else
    self:put(self.env, from, fallback)
  end
  self:put(self.env, name, fallback)
  if from ~= name or was_fixed then self:put(self.fixed, name, number) end
end

-- Reads NAME=value words and tells whether reading goes on.
function Variables:assignments(text, number, exported)
  local i = 1
  self.undo = {}
  while true do
    i = text:find("[^ \t]", i)
    if not i or text:sub(i, i) == "#" then return true end
    local name = leading_name(text, i)
    local behind = text:sub(i + #name, i + #name)
    if name == "" or behind ~= "=" then
      if exported and name ~= "" and (behind == "" or is_blank(behind)) then
        i = i + #name -- export NAME
      else
        for n = #self.undo, 1, -1 do
          local change = self.undo[n]
          change[1][change[2]] = change[3]
        end
        return false -- the assignments were for one command only
      end
    else
      local value, stop, readable = shell_value(text, i + #name + 1)
      if stop <= #text and not is_blank(text:sub(stop, stop)) then
        self.env[name] = nil
        return false -- an operator: the rest is more than assignments
      end
      self:assign(name, value, readable, number)
      i = stop
    end
  end
end

-- Reads one line and tells whether reading goes on.
function Variables:line(line, number)
  local text = line:gsub("^[ \t]+", "")
  if text == "" or text:sub(1, 1) == "#" then return true end
  local first, rest = text:match("^([^ ]*) (.*)$")
  first, rest = first or text, rest or ""
  if first == ":" then
    for field in rest:gmatch("%S+") do
      local bare = field:match('^"*(.*)$')
      bare = bare:match('^(.*[^"])"*$') or ""
      local from, fallback = reference((bare:gsub("=", "-", 1)))
      if from and not self.env[from] then self.env[from] = fallback end
    end
    return true
  end
  if passed[first] then return true end
  if first == "export" then text = rest:gsub("^[ \t]+", "") end
  return self:assignments(text, number, first == "export")
end

-- Returns a reader: call line(text, number) for each line, from the first on, until it
-- returns false. env holds what is known then, and fixed the lines of those that the
-- script sets whatever its environment says.
function environ.reader()
  return setmetatable({ env = {}, fixed = {}, undo = {} }, Variables)
end

return environ
