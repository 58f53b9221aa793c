// Package peercredtest has callers for tests of servers: other users, and crowds of them.
package peercredtest
