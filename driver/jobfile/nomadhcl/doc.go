// Package nomadhcl reads Nomad job files.
//
// Input: the bytes of a job file and the values of its variables. Output: a jobfile.Job, or
// every fault of the file with line and column. The package never evaluates anything outside
// of the file, reads no environment, opens no file, and bounds what a file may compute.
//
// ParseForNomad reads a file that an agent will read too, and leaves to it what only
// Nomad understands; ForAgent is the text for the agent. Parse is for the local scheduler,
// which runs one batch job of one group and one task with the driver raw_exec or exec. What
// would change nothing there (restart, constraint, logs, ...) is accepted; everything else
// is refused with the reason, so that a job never runs as something that its author did
// not write.
//
// Fix rewrites a job file with values of its environment, its flags and its variables.
//
// Interpolation that Nomad does on the node (${NOMAD_...}, ${env...}, ${attr...},
// ${node...}, ${meta...}) stays unchanged, as text. There is one tuning stanza or none:
// a tuning block of the job or the group, in the group's scaling policy, or JSON in meta.
package nomadhcl
