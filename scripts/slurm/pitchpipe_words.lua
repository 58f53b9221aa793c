-- pitchpipe_words writes words into messages and finds the known word that is nearest
-- to a misspelled one. It does no I/O and holds no state. Lua 5.1 to 5.4.

local words = {}

-- Returns the text in double quotes, on one line.
function words.quote(s)
  s = s:gsub('[%c"\\]', function(c)
    if c == '"' or c == "\\" then return "\\" .. c end
    if c == "\t" then return "\\t" end
    if c == "\r" then return "\\r" end
    return string.format("\\x%02x", c:byte())
  end)
  return '"' .. s .. '"'
end

-- Returns where the wanted item stands in a list, nil where it does not.
function words.contains(list, wanted)
  for i, item in ipairs(list) do
    if item == wanted then return i end
  end
  return nil
end

function words.one_of(list)
  if #list < 2 then return table.concat(list) end
  return table.concat(list, ", ", 1, #list - 1) .. " or " .. list[#list]
end

-- The distance of two words: insertions, deletions, substitutions and swaps of
-- neighbours count one each.
local function distance(a, b)
  local before, last = {}, {}
  for j = 0, #b do before[j], last[j] = 0, j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], before[j - 2] + 1)
      end
    end
    before, last = last, row
  end
  return last[#b]
end

-- Returns the known word that is nearest, and nil where none is near enough to be
-- what was meant.
function words.nearest(word, known)
  if word == "" or #word > 64 then return nil end
  local lower, best, least = word:lower(), nil, 64
  for _, candidate in ipairs(known) do
    local d = distance(lower, candidate:lower())
    if d < least and d <= math.max(1, math.floor(math.max(#lower, #candidate) / 3)) then
      best, least = candidate, d
    end
  end
  if best or #lower < 3 then return best end
  for _, candidate in ipairs(known) do
    if candidate:lower():sub(1, #lower) == lower then return candidate end
  end
  return nil
end

function words.did_you_mean(word, known)
  local near = words.nearest(word or "", known or {})
  if near then return "; did you mean " .. words.quote(near) .. "?" end
  return ""
end

return words
