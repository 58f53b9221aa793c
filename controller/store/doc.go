// Package store keeps the durable state of a controller, or of several that share it
// and of which one leads.
//
// In come keys, values and the version that a value is meant to replace; out come
// entries, versions and leases. Its folders are one store each: a file (bbolt), the
// variables of a Nomad cluster, and the keys of Consul. All of them pass the suite of
// storetest. Values that are too large for one entry of a store are divided (package
// chunk), locks that lapse are kept alive and believed in for no longer than the store
// keeps them (package lease), and package mirror writes what one process knows so that
// nothing of another is ever overwritten unseen. The package never decides what a value
// means, and never retries a write of which it is not known whether it had its effect.
package store
