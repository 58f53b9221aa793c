// Package consulkv is a store in the keys of a Consul cluster, for controllers on
// several machines.
//
// In come a client of Consul and a prefix; out comes a store.Store. Below the prefix
// lie "k/" with the values, "c/" with the chunks of those that do not fit into one
// request, and "lock/" with the locks. Writes are transactions that check the index of
// the key. The leader holds a lock by a session that lives by its time to live alone,
// no check of a node's health, and whose end releases the key. After a leader that went
// silent the key stays locked for up to twice the time to live and the lock delay; one
// that released it can be followed at once.
//
// It was proven against the in-process server of test/consulserver, whose behaviour is
// that of the documentation, and not against a Consul cluster: the same suite runs
// against an agent of Consul where one is on PATH. The token needs key_prefix "write"
// on the prefix, and session_prefix "write" on the agent's node. The package never
// deletes a key outside of its prefix.
package consulkv
