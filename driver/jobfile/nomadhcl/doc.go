// Package nomadhcl reads Nomad job files, and carries their tuning blocks to where Nomad
// keeps them (Carry).
//
// In come the bytes of a job file and the values of its variables, out comes a
// jobfile.Job, or every fault of the file with line and column. It reads the part
// of the language that one process on one machine needs: one batch job of one
// group and one task with the driver raw_exec or exec, its resources, environment
// and meta, variables with defaults, locals, and the functions jsonencode,
// format, upper, lower, min, max, tostring, tonumber, join and concat. What would
// change nothing here (restart, constraint, logs, ...) is accepted; everything
// else is refused with the reason, so that a job never runs as something that its
// author did not write.
//
// ParseForNomad reads a file that an agent will read too, and leaves to it what only
// Nomad understands. Parse reads the same way what it has found to run here.
//
// Interpolation that Nomad does on the node (${NOMAD_...}, ${env...}, ${attr...},
// ${node...}, ${meta...}) stays as it stands, as text.
//
// The tuning stanza is looked for as a tuning block of the job or the group, in
// the group's scaling policy, and as JSON in meta; there is one or none.
//
// The package never evaluates anything outside of the file, reads no environment
// and opens no file.
package nomadhcl
