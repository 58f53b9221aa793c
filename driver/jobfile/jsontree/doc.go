// Package jsontree reads a tuning stanza that is written as JSON.
//
// Input: JSON text, or a tree of nodes that another reader made. Output: the
// unjudged jobfile.Block tree with places. The JSON is the HCL tree as objects:
// {"mode":"apply","knob":{"cores":{"values":[1,2,4]}},"budget":{"probes":4}}.
// An object stands for a block; the members of "knob" are knobs by name. A list
// of objects stands for the same blocks one after another, which is how Nomad's
// API wraps them. An outer {"tuning": ...} is taken off.
//
// The package never judges keys, and never guesses at broken JSON.
package jsontree
