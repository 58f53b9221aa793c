// Package vars keeps Nomad's variables and their locks for the server of
// test/nomadserver.
//
// In come requests to /v1/vars and /v1/var/PATH, as HTTP or as calls; out come values,
// the conflicts of check-and-set and locks with status 409, and Nomad's texts. A lock
// that is not renewed is free after twice its TTL and then its delay, as on a real
// server, by the clock that New was given; timers of package time wake those who wait.
//
// Indexes are the cluster's: Hooks say where the next one comes from, who may what, and
// who wants to know. Without hooks the package counts by itself and everybody may
// everything. Filters of lists are refused; nothing is encrypted and nothing is kept on
// a disk.
package vars
