package broker

import (
	"fmt"
	"strings"

	"pitchpipe/driver/slurm/parse"
)

// idsFormat begins what squeue -r is asked for: each job, and each task of an array, on
// a line of its own.
const idsFormat = "JobID:|,ArrayJobID:|,ArrayTaskID:|,"

// The longest numbers: of a job 32 bits, of a task Slurm's own bound of MaxArraySize.
const (
	longestJob  = 10
	longestTask = 7
)

// named reports whether a name is one of a job: its number, or of a task of an array the
// number of the array and that of the task.
func named(name string) bool {
	array, task, isTask := strings.Cut(name, "_")
	return number(array, longestJob) && (!isTask || number(task, longestTask))
}

func number(s string, longest int) bool {
	return s != "" && len(s) <= longest && strings.Trim(s, "0123456789") == ""
}

// nameOf is the name of the job that a line under idsFormat is about. A task has its
// number among Slurm's jobs only since it began or was changed, and that of its array
// before, which is everybody's: so it has this name for good.
func nameOf(line string) (string, error) {
	f := strings.SplitN(line, "|", 4)
	switch {
	case len(f) < 4 || !number(f[0], longestJob):
	case given(f[2]) == "":
		return f[0], nil
	case number(f[1], longestJob) && number(f[2], longestTask):
		return f[1] + "_" + f[2], nil
	}
	return "", fmt.Errorf("squeue prints %.200q: %w", line, parse.ErrFormat)
}

// given empties what Slurm writes for nothing.
func given(s string) string {
	if s == "(null)" || s == "N/A" {
		return ""
	}
	return s
}
