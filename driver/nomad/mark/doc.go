// Package mark prepares the specification of a Nomad job so that its work is done once
// and its task saves when Nomad ends it.
//
// In come a job as an agent parsed it and the name of its run; out comes the same job
// with the command of its main task wrapped by driver/jobfile/mark, and warnings where
// that cannot be or reaches less far. What the author wrote is kept: the wrapper is taken
// off again by Remove and by everybody who reads the command line.
//
// It is right for raw_exec and exec with a command. An image of docker need not have a
// shell, and its entry point is not known here: it stays as it is, with a warning. See
// driver/jobfile/mark for where a mark is seen. The package asks nobody.
package mark
