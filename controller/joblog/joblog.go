package joblog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/controller/evaluate"
)

// ErrInvalid marks a log that cannot be read, or one without a usable line.
var ErrInvalid = errors.New("invalid job log")

// Format is how a log is written.
type Format string

// The formats.
const (
	SWF   Format = "swf"   // Standard Workload Format 2.2, https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
	Sacct Format = "sacct" // sacct -P with its header
	Venus Format = "venus" // a folder, see ReadVenus
	CSV   Format = "csv"   // see the package
)

// Formats lists the formats.
func Formats() []Format { return []Format{SWF, Sacct, Venus, CSV} }

// Job is one run of a job. A count of 0 and an empty word are unknown or none.
type Job struct {
	Line                                  int     // in the log, from 1
	ID, User, Group, Account, Name, State string  // Group: partition, queue or virtual cluster
	Submit, Start, Duration, Limit        float64 // seconds, Submit and Start after Origin; Start and Limit: 0 = unknown
	Nodes, CPUs, GPUs                     int     // of the whole job
	Memory, MemoryUsed                    int64   // bytes of the whole job, 0 = unknown
	CPUSeconds                            float64 // used; 0 = unknown
	Kind                                  string  // what runs, where the log says: for venus model/dataset/batchsize/amp
}

// Broken is a line that cannot be used.
type Broken struct {
	Line int
	Why  string
}

// Cluster is what a log says about a partition. A count of 0 is unknown.
type Cluster struct {
	Group              string // empty: all
	Nodes, Cores, GPUs int    // Cores: of all nodes; GPUs: of each node
}

// Log is what was read.
type Log struct {
	Jobs     []Job
	Broken   []Broken
	Clusters []Cluster // in the order of the log
	Models   Models    // what the folder of a venus log holds besides its jobs
	Origin   float64   // Unix time of second 0 of the jobs' times; 0: they are Unix times, or it is unknown
}

// Read reads the log at path.
func Read(format Format, path string) (Log, error) {
	if format == Venus {
		return readVenus(path)
	}
	if !slices.Contains(Formats(), format) {
		return Parse(format, path, strings.NewReader("")) // which refuses it
	}
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return Log{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	return Parse(format, path, file)
}

// Parse reads a log of any format but Venus; its errors begin with name.
func Parse(format Format, name string, in io.Reader) (Log, error) {
	in, err := evaluate.Unzipped(name, in)
	if err != nil {
		return Log{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	var l Log
	switch format {
	case SWF:
		err = l.swf(in)
	case Sacct:
		err = l.sacct(in)
	case CSV:
		err = l.table(in, nil, nil, "submit", "duration")
	case Venus:
		err = errors.New("it is a folder: want its path")
	default:
		err = fmt.Errorf("format %q: want one of %v", format, Formats())
	}
	if err != nil {
		return Log{}, fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
	}
	return l, l.usable(name)
}

// usable returns an error if no job is left.
func (l Log) usable(name string) error {
	switch {
	case len(l.Jobs) > 0:
		return nil
	case len(l.Broken) > 0:
		return fmt.Errorf("%w: %s:%d: %s; none of %d lines can be used", ErrInvalid, name, l.Broken[0].Line, l.Broken[0].Why, len(l.Broken))
	}
	return fmt.Errorf("%w: %s: it has no job", ErrInvalid, name)
}

// add keeps a job, or its line as broken.
func (l *Log) add(j Job, why string) {
	if why == "" {
		why = j.wrong()
	}
	if why != "" {
		l.Broken = append(l.Broken, Broken{j.Line, why})
		return
	}
	if j.ID == "" {
		j.ID = strconv.Itoa(j.Line)
	}
	if j.Start < j.Submit { // a clock was set back between the two
		j.Start = 0
	}
	l.Jobs = append(l.Jobs, j)
}

// The most that a log may say: beyond lie slips, and numbers that overflow where they are multiplied.
const mostSeconds, mostUnits, mostBytes = 1e11, 1 << 30, 1 << 62

// wrong says what makes a job useless.
func (j *Job) wrong() string {
	if j.Duration == 0 && strings.HasPrefix(j.State, "CANCELLED") {
		return "it was cancelled before it ran" // so it says nothing of waits or of slowdown
	}
	for i, field := range j.fields() {
		value, most := 0.0, 0.0
		switch v := field.(type) {
		case *float64:
			if value, most = *v, mostSeconds; v == &j.CPUSeconds {
				most *= mostUnits
			}
		case *int:
			value, most = float64(*v), mostUnits
		case *int64:
			value, most = float64(*v), mostBytes
		}
		if !(value >= 0 && value <= most) { // NaN, too
			return fmt.Sprintf("%s is %g: want a number from 0 to %g", columns()[i], value, most)
		}
	}
	if j.Nodes+j.CPUs+j.GPUs == 0 {
		return "it has no nodes, cpus or gpus: it never ran"
	}
	return ""
}
