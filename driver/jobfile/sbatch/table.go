package sbatch

import (
	"strings"

	"pitchpipe/driver/jobfile"
)

// takes reports whether an option has an argument.
type takes uint8

const (
	nothing takes = iota
	argument
	maybe // only joined by an equals sign
)

type option struct {
	long  string
	short byte // 0 = none
	takes takes
	use   func(p *parser, at place, value string) bool // false: the value is wrong; nil = accepted and ignored
	want  string                                       // what a value has to be
	why   string                                       // not empty: refused for this reason

	slurms bool // refused only where Slurm does not run the script
}

type place struct {
	line          int
	name          string // as written: --time or -t
	column, value int    // columns of the option and of its value
}

// options lists every option that is known. Those without use and why do not
// change what a job does on one machine, or only where its mail or accounting go.
func options() []option {
	return append(taken(), append(refused(), ignored()...)...)
}

func taken() []option {
	const amount = "want an amount of memory such as 4G or 512M; without a unit it is MiB"
	const one = "want 1: jobs of several nodes or tasks are not run by the local scheduler; submit them to Slurm"
	return []option{
		{long: "cpus-per-task", short: 'c', takes: argument, use: (*parser).cores, want: "want a whole number of cores, 1 or more"},
		{long: "mem", takes: argument, use: (*parser).memory, want: amount},
		{long: "mem-per-cpu", takes: argument, use: (*parser).memoryPerCore, want: amount},
		{long: "time", short: 't', takes: argument, use: (*parser).timeLimit, want: "want minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS"},
		{long: "job-name", short: 'J', takes: argument, use: text(func(j *jobfile.Job) *string { return &j.Name })},
		{long: "output", short: 'o', takes: argument, use: text(func(j *jobfile.Job) *string { return &j.Output })},
		{long: "chdir", short: 'D', takes: argument, use: text(func(j *jobfile.Job) *string { return &j.Dir })},
		{long: "partition", short: 'p', takes: argument, use: text(func(j *jobfile.Job) *string { return &j.Partition })},
		{long: "account", short: 'A', takes: argument, use: text(func(j *jobfile.Job) *string { return &j.Account })},
		{long: "qos", short: 'q', takes: argument, use: text(func(j *jobfile.Job) *string { return &j.QOS })},
		{long: "open-mode", takes: argument, use: text(func(j *jobfile.Job) *string { return &j.OpenMode })},
		{long: "comment", takes: argument, use: text(func(j *jobfile.Job) *string { return &j.Comment })},
		{long: "requeue", use: (*parser).requeue},
		{long: "no-requeue", use: (*parser).requeue},
		{long: "nodes", short: 'N', takes: argument, use: (*parser).onlyOne, want: one},
		{long: "ntasks", short: 'n', takes: argument, use: (*parser).onlyOne, want: one},
		{long: "ntasks-per-node", takes: argument, use: (*parser).onlyOne, want: one},
		{long: "export", takes: argument, use: (*parser).export, want: "want ALL, NONE or names; set variables inside the script with export NAME=${NAME:-value}"},
		{long: "deadline", takes: argument, use: (*parser).observed},
		{long: "exclusive", takes: maybe, use: (*parser).exclusive},
	}
}

func refused() []option {
	const toSlurm = "; submit them to Slurm"
	return []option{
		{long: "array", short: 'a', takes: argument, why: "arrays are not run by the local scheduler" + toSlurm, slurms: true},
		{long: "dependency", short: 'd', takes: argument, why: "dependencies are not known to the local scheduler" + toSlurm, slurms: true},
		{
			long: "begin", short: 'b', takes: argument, why: "deferred starts are not known to the local scheduler" + toSlurm, slurms: true,
			use: text(func(j *jobfile.Job) *string { return &j.Begin }),
		},
		{long: "hold", short: 'H', why: "held jobs are not known to the local scheduler" + toSlurm, slurms: true},
		{long: "clusters", short: 'M', takes: argument, why: "other clusters are not known to the local scheduler" + toSlurm, slurms: true, use: (*parser).clusters},
		{long: "input", short: 'i', takes: argument, why: "the input is not connected by the local scheduler; redirect it inside the script with <", slurms: true},
		{long: "container", takes: argument, why: "containers are not run by the local scheduler" + toSlurm, slurms: true},
		{long: "export-file", takes: argument, why: "an environment file is not read; set the variables inside the script", slurms: true},
		{long: "wrap", takes: argument, why: "a script has its commands in its lines; leave the option out"},
	}
}

// ignored are options that change nothing here, each after its letter where it has one.
func ignored() []option {
	var out []option
	for _, these := range []struct {
		takes takes
		use   func(p *parser, at place, value string) bool
		names string
	}{
		{argument, (*parser).idle, "e:error signal gres G:gpus gpus-per-node gpus-per-task gpus-per-socket"},
		{argument, nil, "C:constraint w:nodelist x:exclude F:nodefile L:licenses m:distribution B:extra-node-info S:core-spec " +
			"mail-type mail-user gres-flags gpu-bind gpu-freq " +
			"cpus-per-gpu mem-per-gpu mem-bind reservation priority tmp cpu-freq hint threads-per-core cores-per-socket " +
			"sockets-per-node ntasks-per-core ntasks-per-socket ntasks-per-gpu profile acctg-freq switches time-min wckey " +
			"thread-spec mincpus delay-boot power wait-all-nodes network mcs-label kill-on-invalid-dep bb bbf prefer extra tres-per-task batch cluster-constraint segment"},
		{maybe, nil, "nice propagate get-user-env oom-kill-step k:no-kill"},
		{nothing, nil, "s:oversubscribe O:overcommit Q:quiet v:verbose W:wait contiguous parsable spread-job use-min-nodes reboot ignore-pbs test-only stepmgr"},
	} {
		for name := range strings.FieldsSeq(these.names) {
			o := option{long: name, takes: these.takes, use: these.use}
			if letter, long, has := strings.Cut(name, ":"); has {
				o.short, o.long = letter[0], long
			}
			out = append(out, o)
		}
	}
	return out
}
