package parse

import (
	"strconv"
	"strings"
)

// QueueFormat is what squeue -r -O is asked for: only what shows whether a job must be looked at,
// and no text that a user wrote. Without -r squeue prints tasks of an array that wait in one line,
// with the size of one of them.
const QueueFormat = "JobID:|,ArrayJobID:|,ArrayTaskID:|,HetJobID:|,State:|,Reason:|,RestartCnt:|,NumCPUs:|,MinMemory:|,TimeLimit:|,Partition:|"

// QueueLine is one line of squeue.
type QueueLine struct {
	ID        string // the number
	ArrayJob  string // equal to ID, or that of the array
	ArrayTask string // empty outside of arrays, else one number

	// Print stays equal until there is a reason to look at the job. Why it waits is left
	// out, since that changes with every look of the scheduler at its queue, except whether it is
	// held.
	Print string
}

// Queue reads the output of squeue under QueueFormat. At most MaxTasks tasks of one array are
// returned that have no own number yet.
func Queue(output []byte) ([]QueueLine, error) {
	rows, err := Rows("squeue", output, strings.Count(QueueFormat, "|")+1)
	var out []QueueLine
	unnumbered := map[string]int{} // tasks, by their array
	for _, f := range rows {
		if f[0] == "" || strings.Trim(f[0], "0123456789") != "" {
			return nil, badValue("JobID", f[0])
		}
		if _, err := state("State", f[4]); err != nil {
			return nil, err
		}
		if f[0] == f[1] && Given(f[2]) != "" && f[6] == "0" {
			if unnumbered[f[1]]++; unnumbered[f[1]] > MaxTasks {
				continue
			}
		}
		if !strings.Contains(strings.ToLower(f[5]), "held") {
			f[5] = ""
		}
		out = append(out, QueueLine{ID: f[0], ArrayJob: f[1], ArrayTask: Given(f[2]), Print: strings.Join(f, "|")})
	}
	return out, err
}

const everyKeys = "JobID,ArrayJobID,ArrayTaskID,UserName,Account,Partition,QOS,State,NumCPUs,NumNodes,TimeLimit,SubmitTime,StartTime,EndTime,Nice,tres-per-job,tres-per-node,Comment,Name"

// EveryFormat is what squeue -r -O is asked for where every job counts, whether it is looked at
// or not.
func EveryFormat(delimiter string) string {
	return strings.ReplaceAll(everyKeys, ",", ":"+delimiter+",") + ":" + delimiter
}

// Every reads the output of squeue under EveryFormat, and how many jobs it could not read. At most
// MaxTasks tasks of one array are returned that have no number yet.
func Every(output []byte, delimiter string) (out []Job, left int, err error) {
	rows, err := delimited("squeue", strings.Split(everyKeys, ","), delimiter, output)
	unnumbered := map[string]int{} // tasks, by their array
	for _, r := range rows {
		j := Job{
			ID: read(&r, "JobID", digits), User: r.text("UserName"), Account: r.word("Account"), Partition: r.text("Partition"), QOS: r.word("QOS"), Name: r.fields["Name"], Comment: r.fields["Comment"],
			State: read(&r, "State", state), CPUs: read(&r, "NumCPUs", low), Nodes: read(&r, "NumNodes", low), TimeLimit: read(&r, "TimeLimit", Limit),
			Submitted: read(&r, "SubmitTime", Instant), Started: read(&r, "StartTime", Instant), Ended: read(&r, "EndTime", Instant), Tasks: 1,
			Nice: read(&r, "Nice", func(_, s string) (int, error) { return strconv.Atoi(s) }),
		}
		if j.ArrayTask = r.word("ArrayTaskID"); j.ArrayTask != "" {
			j.ArrayJob = read(&r, "ArrayJobID", digits)
		}
		j.GPUs = max(gpus(r.fields["tres-per-job"]), j.Nodes*gpus(r.fields["tres-per-node"]))
		if r.err != nil {
			left++
			continue
		}
		if j.ID == j.ArrayJob { // it has no own number yet, and advice would give it one
			if unnumbered[j.ID]++; unnumbered[j.ID] > MaxTasks {
				continue
			}
		}
		out = append(out, j)
	}
	return out, left, err
}

// DependantsFormat is what squeue -o is asked for to find who depends on a job: the name, a
// user's text, comes last.
const DependantsFormat = "%i %U %E %j"

// Dependant reads the output of squeue -r under DependantsFormat, and returns a job that
// depends on this one: by its number, its array's, or as one that runs when none of its name
// does (singleton).
func Dependant(output []byte, j Job) (id string, ok bool) {
	for line := range strings.Lines(string(output)) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), " ", 4)
		if len(f) < 4 || f[0] == j.ID || j.ArrayJob != "" && f[0] == j.ArrayJob+"_"+j.ArrayTask {
			continue
		}
		if f[1] == strconv.FormatUint(uint64(j.UID), 10) && f[3] == j.Name && strings.Contains(f[2], "singleton") {
			return f[0], true
		}
		for _, on := range strings.FieldsFunc(f[2], func(c rune) bool { return (c < '0' || c > '9') && c != '_' }) {
			if of, _, _ := strings.Cut(on, "_"); of == j.ID || j.ArrayJob != "" && of == j.ArrayJob {
				return f[0], true
			}
		}
	}
	return "", false
}
