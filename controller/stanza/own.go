package stanza

import (
	"slices"
	"strings"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

// Own returns the settings that the job's owner chose: cores and memory as the
// job asks its scheduler for them, every other knob as the job file's environment
// or command line shows it, else its default, and following knobs as shown, else
// as the knob that they follow. A program whose variable the file does not set may take another
// number of threads than it has cores. What is not known is left out.
func Own(job *jobfile.Job, p tuning.Policy) tuning.Settings {
	own := tuning.Settings{}
	if job == nil {
		return own
	}
	if job.Cores > 0 {
		own[tuning.Cores] = tuning.Number(float64(job.Cores))
	}
	if job.MemoryBytes > 0 {
		own[tuning.Memory] = tuning.Number(float64(job.MemoryBytes))
	}
	for _, k := range p.Knobs {
		if k.Name == tuning.Cores || k.Name == tuning.Memory {
			continue
		}
		if v, ok := shown(job, k); ok {
			own[k.Name] = v
		} else if k.Default.IsSet() {
			own[k.Name] = k.Default
		}
	}
	for _, k := range p.Knobs {
		if _, known := own[k.Name]; known || k.Follows == "" {
			continue
		}
		if v, ok := own[k.Follows]; ok && !left(job, k) {
			own[k.Name] = v
		}
	}
	return own
}

// shown reads the value of a knob from the job file's own environment or command
// line. A value that only the node can fill in is not shown.
func shown(job *jobfile.Job, k tuning.Knob) (tuning.Value, bool) {
	text, ok := "", false
	switch {
	case k.Env != "":
		text, ok = job.Env[k.Env]
	case k.Arg != "":
		text, ok = argument(job.Argv, k.Arg)
	}
	if !ok || strings.Contains(text, "${") {
		return tuning.Value{}, false
	}
	return parse(k.Name, text)
}

// argument finds the value of a flag: the last one counts, as for most programs.
func argument(argv []string, flag string) (value string, ok bool) {
	for i, a := range argv {
		if i == 0 {
			continue // the program itself
		}
		if v, joined := strings.CutPrefix(a, flag+"="); joined {
			value, ok = v, true
		}
		if a == flag && i+1 < len(argv) {
			value, ok = argv[i+1], true
		}
	}
	return value, ok
}

// left reports whether a job file leaves the variable of a knob that follows the cores to its program: its
// environment, the lines of its script and the words of its command do not name it.
func left(job *jobfile.Job, k tuning.Knob) bool {
	words := append(strings.Split(string(job.Script), "\n"), job.Argv...)
	_, set := job.Env[k.Env]
	return k.Follows == tuning.Cores && k.Env != "" && !set && !slices.ContainsFunc(words, func(word string) bool {
		return !strings.HasPrefix(strings.TrimSpace(word), "#") && strings.Contains(word, k.Env)
	})
}
