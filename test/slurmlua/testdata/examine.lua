-- Reads scripts from the input, each as a line with its length and its bytes, and
-- answers each with a line with the number of faults (-1: no stanza), a line for each
-- fault, and for a good stanza the record and the mark.
package.path = arg[1] .. "/?.lua;" .. package.path
local pitchpipe = require("pitchpipe")

while true do
  local length = io.read("*l")
  if not length then break end
  local text = tonumber(length) > 0 and io.read(tonumber(length)) or ""
  local found = pitchpipe.examine(text)
  if not found then
    io.write("-1\n")
  else
    io.write(#found.faults, "\n")
    for _, fault in ipairs(found.faults) do
      io.write(fault.at.line, " ", fault.at.column, " ", fault.found, "; ", fault.want, "\n")
    end
    if #found.faults == 0 then io.write(found.record, "\n", found.mark, "\n") end
  end
  io.flush()
end
