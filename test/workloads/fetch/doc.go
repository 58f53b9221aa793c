// Package fetch reads blocks from a store that answers late.
//
// In come an input number and a seed that make the store's blocks; out comes, per epoch
// of many requests, the share of the blocks that are not what they should be (as loss)
// and of those that are (as acc). The store listens on the loopback, in the same
// process, and answers each request after a delay, as a distant one would; every thread
// has a connection of its own and waits for its answer before it asks again. So the
// threads wait for most of their time, and more of them wait together. It never talks
// to anything but the loopback, and nobody else is answered.
package fetch
