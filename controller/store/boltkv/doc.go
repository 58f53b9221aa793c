// Package boltkv is a store in one bbolt file, for controllers on one machine.
//
// In comes the path of the file; out comes a store.Store. The file is opened for the
// time of each call and locked meanwhile, so that several processes may use it; each
// call waits for the others. What was written is on disk when the call returns. The
// leader of a name holds the lock of a file beside it, which the kernel takes back when
// the process ends, however it ends: the next one leads at once. A leader that is only
// stopped, as by SIGSTOP, goes on leading, since nobody can tell that from a busy one.
//
// The file must lie on a file system whose locks work between the processes: not on
// NFS between machines. The package never migrates a file, and refuses one that is not
// its own.
package boltkv
