// Package mirror keeps what one process changes in a store that several share.
//
// In come changes of any keys, each time those that belong together; out come what the
// store holds, and an error where another process changed any of it meanwhile. Each key
// is written where it has the version that was last seen of it, so that nothing is ever
// written over what this process does not know. A change of several keys goes into one
// entry first, the batch, and from there to the keys; who begins to lead finishes the
// batch of one that died in between, and rewrites its entry, so that no process that led
// before can begin another. Values are compressed where that makes them smaller.
//
// Once anything was found that another process wrote, the mirror is stale: it refuses
// every change until it was loaded anew by a process that leads. An answer that did not
// come leaves one key in doubt; before that key is written again the store is asked
// what became of it. The package never decides who leads, and never merges.
package mirror
