// Package nomadjson reads a job as Nomad's API shows it once it is registered.
//
// Input: JSON, the job itself or an object whose Job it is, as `nomad job inspect`
// prints it. Output: a jobfile.Job. The tuning stanza is looked for in the scaling
// policy of a group, where Nomad wraps each block in a list, and as JSON text in meta.
// What was wrapped by package once comes out as the owner wrote it.
//
// The text has no lines that a user knows, so that each place is a path in the job,
// such as group "g" scaling.policy.tuning.knob.cores: it is part of Pos.Filename, and of
// what was found.
//
// Fix rewrites a job with values of its environment and its flags.
//
// It refuses only broken JSON, unreadable stanzas, and stanzas in jobs that cannot be
// tuned. The package knows no client and opens no file.
package nomadjson
