// Package journal keeps the records of driver/nomad in the files of a folder.
//
// In come records under names, out come the same records after a crash: a record is on
// disk as a whole when Save returns, or is as it was. The package reads no other file
// and never looks into a record.
package journal
