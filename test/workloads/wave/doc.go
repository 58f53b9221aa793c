// Package wave lets a wave run along a string, all threads in step.
//
// In come an input number and a seed that make the string's shape; out comes, per epoch
// of many steps, how much the energy of the wave has drifted (as loss) and one less
// that (as acc). After each step the threads wait for each other by looking again and
// again, as programs built for cores of their own do (active waiting). Where they have to
// share a core, one of them looks while the other could have worked. A step reads only
// what the one before wrote, so the result does not depend on the number of threads.
package wave
