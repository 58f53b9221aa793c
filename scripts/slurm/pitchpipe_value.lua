-- pitchpipe_value reads numbers, amounts and times as `pitchpipe validate` reads
-- them. It does no I/O and holds no state. Lua 5.1 to 5.4.

local keys = require("pitchpipe_keys")

local value = {}

-- tonumber follows the locale of the process, job files do not.
local point = string.format("%.1f", 0.5):sub(2, 2)

-- Returns the float of a decimal number, nil for anything else and for what no
-- float holds.
function value.number(s)
  local mantissa, exponent = s:match("^[+-]?([0-9.]+)(.*)$")
  if not mantissa or not mantissa:find("[0-9]") then return nil end
  local _, points = mantissa:gsub("%.", "")
  if points > 1 or (exponent ~= "" and not exponent:find("^[eE][+-]?[0-9]+$")) then return nil end
  if point ~= "." then s = s:gsub("%.", point) end
  s = s:gsub("^%+", "")
  local n = tonumber(s)
  if not n then return nil end
  n = n + 0.0
  if n ~= n or n == math.huge or n == -math.huge then return nil end
  return n
end

-- The blanks that Unicode knows beyond ASCII's, and that may surround an amount.
local wide_blanks = {
  "\194\133", "\194\160", "\225\154\128", "\226\128\168", "\226\128\169", "\226\128\175", "\226\129\159", "\227\128\128",
}
for last = 128, 138 do wide_blanks[#wide_blanks + 1] = "\226\128" .. string.char(last) end

-- Returns s without the blanks around it.
function value.trim(s)
  local changed = true
  while changed do
    changed = false
    local inner = s:match("^[ \t\n\v\f\r]*(.*)$")
    inner = inner:match("^.*[^ \t\n\v\f\r]") or ""
    for _, blank in ipairs(wide_blanks) do
      if inner:sub(1, #blank) == blank then inner, changed = inner:sub(#blank + 1), true end
      if #inner > 0 and inner:sub(-#blank) == blank then inner, changed = inner:sub(1, -#blank - 1), true end
    end
    s = inner
  end
  return s
end

local function amount(s, units)
  s = value.trim(s)
  for _, unit in ipairs(units) do
    if unit.name == "" or s:sub(-#unit.name) == unit.name then
      local n = value.number(value.trim(s:sub(1, #s - #unit.name)))
      if n then
        local v = n * unit.factor
        if n < 0 or v == math.huge then return nil end
        return v
      end
    end
  end
  return nil
end

-- Returns whole bytes, or nil.
function value.bytes(s)
  local b = amount(s, keys.units.bytes)
  if not b or b > keys.limits.bytes then return nil end
  local whole = math.floor(b)
  if b - whole >= 0.5 then whole = whole + 1 end
  return whole
end

-- Returns joules, or nil.
function value.joules(s) return amount(s, keys.units.energy) end

local nanoseconds = {
  ns = 1, us = 1e3, ["\194\181s"] = 1e3, ["\206\188s"] = 1e3, ms = 1e6, s = 1e9, m = 6e10, h = 3.6e12,
}

-- Reads 1h30m, and tells in the second place whether the text is such a time.
local function spans(s)
  local sign, rest = s:match("^([+-]?)(.*)$")
  if rest == "0" then return 0, true end
  if rest == "" then return nil, false end
  local total = 0.0
  while rest ~= "" do
    local whole, dot, fraction, unit, after = rest:match("^([0-9]*)(%.?)([0-9]*)([^0-9.]*)(.*)$")
    if dot == "" then whole, fraction = whole .. fraction, "" end
    if (whole == "" and fraction == "") or not nanoseconds[unit] then return nil, false end
    local factor = nanoseconds[unit]
    local part = tonumber(whole == "" and "0" or whole) * 1.0
    if part > 9223372036854775808 / factor then return nil, false end
    total = total + part * factor
    if fraction ~= "" then
      local f, scale = 0.0, 1.0
      for digit in fraction:gmatch("[0-9]") do
        if f > 922337203685477580 then break end
        f, scale = f * 10 + tonumber(digit), scale * 10
      end
      total = total + math.floor(f * (factor / scale))
    end
    if total > 9223372036854775807 then return nil, false end
    rest = after
  end
  if sign == "-" then total = -total end
  return total, true
end

-- Returns nanoseconds, or nil for what is no time or negative.
function value.duration(s)
  s = value.trim(s)
  local d, is_span = spans(s)
  if not is_span then
    local text, scale = s, 1e9
    if s:sub(-1) == "d" then text, scale = s:sub(1, -2), 24 * 3.6e12 end
    local n = value.number(text)
    if not n or n * scale > 4611686018427387903 then return nil end
    d = math.floor(n * scale + 0.5)
  end
  if d < 0 then return nil end
  return d
end

-- Tells whether a text can stand in both spellings of a stanza: valid UTF-8
-- without control characters but the tab, without the replacement character and
-- the byte order mark.
function value.printable(s)
  if not s:find("[^\t\032-\126]") then return true end
  local i = 1
  while i <= #s do
    local a, b, c, d = s:byte(i, i + 3)
    local function tail(x) return x ~= nil and x >= 128 and x < 192 end
    if a < 128 then
      if (a < 32 and a ~= 9) or a == 127 then return false end
      i = i + 1
    elseif a >= 194 and a < 224 then
      if not tail(b) or (a == 194 and b < 160) then return false end -- the second are controls
      i = i + 2
    elseif a >= 224 and a < 240 then
      if not tail(b) or not tail(c) or (a == 224 and b < 160) or (a == 237 and b >= 160) then return false end
      if a == 239 and ((b == 191 and c == 189) or (b == 187 and c == 191)) then return false end
      i = i + 3
    elseif a >= 240 and a < 245 then
      if not tail(b) or not tail(c) or not tail(d) or (a == 240 and b < 144) or (a == 244 and b >= 144) then return false end
      i = i + 4
    else
      return false
    end
  end
  return true
end

return value
