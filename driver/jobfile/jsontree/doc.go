// Package jsontree reads a tuning stanza that is written as JSON, or as an object of a
// Nomad job file.
//
// Input: JSON text, or an expression of the language of job files. Output: the unjudged
// jobfile.Block tree with places. The JSON is the HCL tree as objects:
// {"mode":"apply","knob":{"cores":{"values":[1,2,4]}},"budget":{"probes":4}}.
// An object stands for a block; the members of "knob" and "action" are blocks by name. A
// list of objects stands for the same blocks one after another, which is how Nomad's API
// wraps them. An outer {"tuning": ...} is taken off.
//
// The package never judges keys, and never guesses at broken JSON.
package jsontree
