-- Reads scripts from the input, each as a line with its length and its bytes, and
-- answers each with a line "faults warnings mark" (- where it has none), then a line
-- for each fault and each warning.
package.path = arg[1] .. "/?.lua;" .. package.path
local pitchpipe = require("pitchpipe")

while true do
  local length = io.read("*l")
  if not length then break end
  local text = tonumber(length) > 0 and io.read(tonumber(length)) or ""
  local found = pitchpipe.examine(text) or { faults = {}, warnings = {} }
  io.write(#found.faults, " ", #found.warnings, " ", found.mark or "-", "\n")
  for _, list in ipairs({ found.faults, found.warnings }) do
    for _, fault in ipairs(list) do
      io.write(fault.line, ":", fault.column, " ", fault.found, "; ", fault.want, "\n")
    end
  end
  io.flush()
end
