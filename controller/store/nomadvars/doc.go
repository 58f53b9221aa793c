// Package nomadvars is a store in the variables of a Nomad cluster, for controllers on
// several machines, and with no service but Nomad.
//
// In come a client of Nomad, a namespace and a prefix; out comes a store.Store. Below
// the prefix lie "k/" with the values, "c/" with the chunks of those that do not fit
// into a variable, "h/" with those of both whose path would be too long, and "lock/"
// with the locks. A variable takes 64 KiB of text, so that its value is in base64, and
// a path of 128 characters without dots, which are written as "~2e". Writes are checked
// by the index of the variable. Nomad keeps variables encrypted.
//
// The leader holds the lock of a variable under an id of its own choice, so that an
// answer that got lost loses no lock. Nomad frees a lock after twice its time to live
// without a renewal, and its delay; the holder stops believing in it after one time to
// live. It frees it without looking whose it has become meanwhile: who released a lock
// late, after it had lapsed and before its delay was over, would take it from the next
// holder. Therefore a lapsed lock is never released here, and Check always asks Nomad,
// by renewing. A lock that is released in time is free at once.
//
// The token, or the workload identity of the controller's own job, needs the
// capabilities list, read, write and destroy on the variables of the prefix. The
// package never writes a variable outside of it, and never asks about jobs.
package nomadvars
