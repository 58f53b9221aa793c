// Package jobspec reads Nomad's job files for the server of test/nomadserver, as the
// parser of a real agent does behind /v1/jobs/parse.
//
// In come the text of a job file and the values of its variables; out comes the job as
// the API has it, not canonicalised, or the errors in Nomad's words, with file, line
// and column. What the language has is read off the hcl tags of the types in
// hashicorp/nomad/api, so that a block or an attribute that Nomad does not know is
// refused in the same words: "Unsupported block type; Blocks of type "tuning" are not
// expected here."
//
// Names that are known on the node alone (${NOMAD_...}, ${attr...}, ${node...}, and
// whatever else is neither var nor local) stay as they stand, as text.
//
// Left out, and refused where they stand in a file: a task without a group, vault and
// secret blocks of the whole job or group, validation rules of variables, job files in
// JSON, and the functions for addresses, YAML, passwords and random ids. Functions that
// read files are refused in the agent's words. Package driver/jobfile/nomadhcl reads
// the same language for another purpose: it wants the places in the text, this one
// wants the job.
package jobspec
