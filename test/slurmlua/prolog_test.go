package slurmlua_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver/jobfile"
)

// Any two users other than root who cannot be logged in, and the account
// that every Linux has, under which the controller of these tests runs.
const (
	owner    = 64801
	stranger = 64802
	nobody   = 65534
)

// stub is a listener that writes down how it was started, and stays.
const stub = `#!/bin/sh
given=$PATH
PATH=/usr/bin:/bin
cd ROOT/said || exit
files=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2)
{
	echo "args $*"
	echo "path $given"
	echo "uid $(id -u)"
	read -r _ _ _ _ group session _ </proc/$$/stat
	echo "alone $((group == $$ && session == $$))"
	echo files $files
} >.new 2>&1
mv .new $$
exec sleep 600
`

// site is a folder with the prolog, its configuration conf, the folder slurm-env of settings
// whose file 42 is that of the job, and a listener with the folder that it writes into.
type site struct {
	root, prolog, conf, dir, listener string
}

// newSite installs the prolog as for a site whose controller runs as nobody. It needs root,
// for files of several users.
func newSite(t *testing.T) site {
	t.Helper()
	if os.Getuid() != 0 {
		missing(t, "the right to make files of other users")
	}
	root := t.TempDir()
	openTo(t, root)
	in := func(name string) string { return filepath.Join(root, name) }
	s := site{root: root, prolog: in("task_prolog"), conf: in("conf"), dir: in("slurm-env"), listener: in("listener")}
	src, err := os.ReadFile(filepath.Join(plugin, "task_prolog"))
	if err != nil {
		t.Fatal(err)
	}
	text := replace(t, string(src), "\nconf=/etc/pitchpipe/task_prolog.conf\n", "\nconf="+s.conf+"\n")
	text = replace(t, text, "timeout -s KILL 1 ", "timeout -s KILL 60 ") // a machine that runs tests may be slow
	s.write(t, s.prolog, text, 0, 0o755)
	s.write(t, s.conf, "site_dir="+s.dir+"\nsite_user=nobody\n", 0, 0o644)
	s.write(t, s.listener, strings.ReplaceAll(stub, "ROOT", root), 0, 0o755)
	s.sh(t, fmt.Sprintf("mkdir -m 755 slurm-env said && chown nobody slurm-env && chown %d said", owner))
	t.Cleanup(func() {
		for _, pid := range s.started(t) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	})
	return s
}

// openTo opens a folder of the test, and those above it, to other users.
func openTo(t *testing.T, dir string) {
	t.Helper()
	for ; strings.HasPrefix(dir, filepath.Clean(os.TempDir())+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func (s site) write(t *testing.T, path, text string, uid int, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, uid, uid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// sh runs a script as root in the folder of the site.
func (s site) sh(t *testing.T, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
	cmd.Dir = s.root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// run runs the prolog as a user and returns what it prints, but for what it says first of a
// job with a mark.
func (s site) run(t *testing.T, uid uint32, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.prolog)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	cmd.Env = append([]string{"PATH=/nowhere", "HOME=" + s.root, "SLURM_JOB_ID=42", "PITCHPIPE_JOB=2:" + declared}, env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%v, and on standard error %q", err, stderr.String())
	}
	text, unmarked := strings.CutPrefix(string(out), "unset PITCHPIPE_JOB\n")
	if !unmarked && len(out) > 0 && !strings.HasPrefix(string(out), "unset PITCHPIPE_SETTINGS\n") {
		t.Errorf("the mark is left to what the job submits:\n%s", out)
	}
	return text
}

// started are the processes of the stubs that have written.
func (s site) started(t *testing.T) (pids []int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.root, "said", "[0-9]*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

const (
	declared = ":OMP_NUM_THREADS=#;BATCH=#|adam|a,b%{x}=/:@+;WORD=sgd|adam;PATH=#;LD_PRELOAD=/x"
	applied  = "OMP_NUM_THREADS=2\nBATCH=a,b%{x}=/:@+\n"
	exported = "export OMP_NUM_THREADS=2\nexport BATCH=a,b%{x}=/:@+\n"
	no       = "print pitchpipe: the settings chosen for this job are not applied: "
	badFile  = no + "the file is not a plain file that only the controller may write\n"
	badDir   = no + "others than the controller may write its folder\n"
)

// TestTheProlog gives it the text of a settings file, after a script has prepared the site.
func TestTheProlog(t *testing.T) {
	t.Parallel()
	const (
		notNumber = no + "the value of OMP_NUM_THREADS is neither a number nor a word of the stanza\n"
		character = " has a character that no value has\n"
		live      = "echo {} >slurm-env/42.json; chown nobody slurm-env/42.json"
		ownDir    = "mkdir own; chown 64801 own; echo owner_dir=own >>conf; "
		ownMode   = "echo owner_dir=slurm-env >conf; chown 64801 slurm-env; "
		hang      = "sed -i 's/KILL 60/KILL 1/' task_prolog; rm conf; mkfifo conf"
		settings  = "PITCHPIPE_SETTINGS="
	)
	array, acts := []string{"SLURM_ARRAY_JOB_ID=40", "SLURM_ARRAY_TASK_ID=3"}, []string{"PITCHPIPE_JOB=2:action:"}
	for _, tt := range []struct {
		name, text string
		env        []string
		prepare    string
		want       string
	}{
		{"exports what the controller wrote, word for word", applied, nil, "", exported},
		{"takes a last line without its end", "BATCH=1", nil, "", "export BATCH=1\n"},
		{"takes a number", "BATCH=-1.5e-07\n", nil, "", "export BATCH=-1.5e-07\n"},
		{"takes a word of the stanza", "WORD=sgd\n", nil, "", "export WORD=sgd\n"},
		{"refuses a number where the stanza has words", "WORD=2\n", nil, "", no + "the value of WORD is no word of the stanza\n"},
		{"refuses a part of a word", "WORD=sg\n", nil, "", no + "the value of WORD is no word of the stanza\n"},
		{"refuses two words", "WORD=sgd|adam\n", nil, "", no + "the value of WORD" + character},
		{"refuses the sign for numbers", "BATCH=#\n", nil, "", no + "the value of BATCH" + character},
		{"refuses an empty value", "OMP_NUM_THREADS=\n", nil, "", notNumber},
		{"refuses a word where the stanza has numbers", "OMP_NUM_THREADS=x\n", nil, "", notNumber},
		{"refuses two points", "OMP_NUM_THREADS=1.2.3\n", nil, "", notNumber},
		{"refuses an exponent without digits", "OMP_NUM_THREADS=1e\n", nil, "", notNumber},
		{"refuses what a shell runs as a subscript", "OMP_NUM_THREADS=a[$(id >pwned; echo 0)]\n", nil, "", no + "the value of OMP_NUM_THREADS" + character},
		{"sets nothing in a job that is not to be tuned", "", []string{"PITCHPIPE_JOB=2::"}, "", ""},
		{"refuses a file for a job that is not to be tuned", applied, []string{"PITCHPIPE_JOB=2::"}, "", no + "OMP_NUM_THREADS is not declared by the stanza\n"},
		{"does nothing for an empty file", "", nil, "", ""},
		{"leaves at once without the mark", applied, []string{"PITCHPIPE_JOB="}, "", ""},
		{"leaves at once with the mark of another version", applied, []string{"PITCHPIPE_JOB=1:BATCH:"}, "", ""},
		{"takes no settings of another job along", applied, []string{"PITCHPIPE_JOB=", settings + "/srv/settings/41.json"}, "", "unset PITCHPIPE_SETTINGS\n"},
		{"leaves those of the job to its steps", applied, []string{"PITCHPIPE_JOB=", settings + "/srv/settings/42.json"}, "", ""},
		{"leaves a file that the user named", applied, []string{"PITCHPIPE_JOB=", settings + "/home/alice/mine.json"}, "", ""},
		{"leaves where the job has no number", applied, []string{"SLURM_JOB_ID=../42"}, "", ""},
		{"does nothing where no file stands", applied, []string{"SLURM_JOB_ID=43"}, "", ""},
		{"refuses a file of the job's own user", applied, nil, "chown 64801 slurm-env/42", badFile},
		{"refuses a file of another user", applied, nil, "chown 64802 slurm-env/42", badFile},
		{"refuses a file of root", applied, nil, "chown 0 slurm-env/42", badFile},
		{"refuses a file that its group may write", applied, nil, "chmod 664 slurm-env/42", badFile},
		{"refuses a file that anyone may write", applied, nil, "chmod 646 slurm-env/42", badFile},
		{"says it once and not for each task", applied, []string{"SLURM_PROCID=3"}, "chown 64801 slurm-env/42", ""},
		{"says that the file cannot be read", applied, nil, "chmod 600 slurm-env/42", no + "the file cannot be read\n"},
		{"refuses a name that is not declared", "OTHER=1\n", nil, "", no + "OTHER is not declared by the stanza\n"},
		{"refuses a part of a declared name", "OMP=1\n", nil, "", no + "OMP is not declared by the stanza\n"},
		{"refuses all where one line is refused", "BATCH=1\nOTHER=1\n", nil, "", no + "OTHER is not declared by the stanza\n"},
		{"refuses PATH though it is declared", "PATH=/x\n", nil, "", no + "PATH is never set\n"},
		{"refuses the linker's variables though they are declared", "LD_PRELOAD=/x\n", nil, "", no + "LD_PRELOAD is never set\n"},
		{"says in the output what the first line says", "# move to cores=2: it saves $(time)\nBATCH=64\n", nil, "", "print pitchpipe: move to cores=2: it saves $(time)\nexport BATCH=64\n"},
		{"says what it says where nothing is set", "# hold\n", nil, "", "print pitchpipe: hold\n"},
		{"says nothing in the middle", "BATCH=64\n# hold\n", nil, "", no + "line 2 has no equals sign\n"},
		{"refuses a line without an equals sign", "BATCH\n", nil, "", no + "line 1 has no equals sign\n"},
		{"refuses a name with a blank", "export BATCH=1\n", nil, "", no + "line 1 does not begin with the name of a variable\n"},
		{"refuses a line without a name", "BATCH=1\n=1\n", nil, "", no + "line 2 does not begin with the name of a variable\n"},
		{"refuses control characters", "BATCH=a\rb\n", nil, "", no + "line 1 holds characters that are not printable ASCII\n"},
		{"refuses what a terminal acts on", "# hold \u009b31m\n", nil, "", no + "line 1 holds characters that are not printable ASCII\n"},
		{"takes as many variables where it says something", "# hold\n" + strings.Repeat("BATCH=1\n", 64), nil, "", "print pitchpipe: hold\n" + strings.Repeat("export BATCH=1\n", 64)},
		{"refuses more all the same", "# hold\n" + strings.Repeat("BATCH=1\n", 65), nil, "", no + "the file is too long\n"},
		{"refuses a long file", strings.Repeat("BATCH=1\n", 65), nil, "", no + "the file is too long\n"},
		{"refuses a long line", "BATCH=" + strings.Repeat("x", 1100), nil, "", no + "the file is too long\n"},
		{"refuses a symbolic link", applied, nil, "cd slurm-env; mv 42 real; ln -s real 42; chown -h nobody 42", badFile},
		{"refuses a file that hangs who reads it", applied, nil, "rm slurm-env/42; mkfifo slurm-env/42; chown nobody slurm-env/42", badFile},
		{"gives up after a second where reading hangs", applied, nil, hang, no + "they could not be read within a second\n"},
		{"refuses a folder that others may write", applied, nil, "chmod 777 slurm-env", badDir},
		{"refuses a folder of another user", applied, nil, "chown 64802 slurm-env", badDir},
		{"takes a folder of root", applied, nil, "chown 0 slurm-env", exported},
		{"does nothing without its configuration", applied, nil, "rm conf", ""},
		{"refuses where the account is not known", applied, nil, "sed -i s/nobody/no-such-account/ conf", no + "the account of the controller is not known here\n"},
		{"names the file of live settings", applied, []string{"PITCHPIPE_JOB=2:live" + declared}, live, exported + "export PITCHPIPE_SETTINGS=DIR/42.json\n"},
		{
			"refuses a file of live settings of another user",
			applied,
			[]string{"PITCHPIPE_JOB=2:live" + declared},
			live + "; chown 64802 slurm-env/42.json",
			no + "the file of live settings is not a plain file that only the controller may write\n",
		},
		{"names the file to a job that offers actions before it is there", "", acts, "rm slurm-env/42", "export PITCHPIPE_SETTINGS=DIR/42.json\n"},
		{"names the file to a job that offers actions beside its variables", applied, []string{"PITCHPIPE_JOB=2:action" + declared}, "", exported + "export PITCHPIPE_SETTINGS=DIR/42.json\n"},
		{"names in owner mode a file that is not there", "", acts, ownMode + "rm slurm-env/42", "export PITCHPIPE_SETTINGS=DIR/42.json\n"},
		{"names no file where the controller never made its folder", "", acts, ownMode + "rm -r slurm-env", ""},
		{"names no file in a folder that others may write", "", acts, "rm slurm-env/42; chmod 777 slurm-env", badDir},
		{"names no file of live settings to a job without live knobs", applied, nil, live, exported},
		{"takes in owner mode a file of the job's own user", applied, nil, ownMode + "chown 64801 slurm-env/42", exported},
		{"refuses in owner mode a file of another user", applied, nil, ownMode + "chown 64802 slurm-env/42", badFile},
		{"refuses in owner mode a file of the site's controller", applied, nil, ownMode, badFile},
		{"takes the site's file where both are there", "BATCH=64\n", nil, ownDir + "echo BATCH=adam >own/42; chown 64801 own/42", "export BATCH=64\n"},
		{"takes the user's own file where the site has none", "", nil, ownDir + "echo BATCH=adam >own/42; chown 64801 own/42; rm slurm-env/42", "export BATCH=adam\n"},
		{"takes a file where another job is off", applied, nil, ownDir + "echo >own/43.off", exported},
		{"sets nothing in a job that is off", applied, nil, ownDir + "echo >own/42.off", ""},
		{"sets nothing in an array's task that is off", applied, array, ownDir + "echo >own/40_3.off", ""},
		{"sets nothing in an array that is off", applied, array, ownDir + "echo >own/40.off", ""},
		{"takes a file where another task of the array is off", applied, array, ownDir + "echo >own/40_4.off", exported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.write(t, filepath.Join(s.dir, "42"), tt.text, nobody, 0o644)
			s.sh(t, tt.prepare)
			if diff := cmp.Diff(strings.ReplaceAll(tt.want, "DIR", s.dir), s.run(t, owner, tt.env...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if out := s.run(t, 0, tt.env...); strings.Contains(out, "export") { // it does nothing for root
				t.Errorf("a job of root's gets %q", out)
			}
			s.noReader(t)
		})
	}
}

// noReader makes sure that no process waits for the other end of a FIFO.
func (s site) noReader(t *testing.T) {
	t.Helper()
	for _, path := range []string{s.conf, filepath.Join(s.dir, "42")} {
		info, err := os.Stat(path)
		for deadline := time.Now().Add(30 * time.Second); err == nil && info.Mode()&os.ModeNamedPipe != 0; time.Sleep(10 * time.Millisecond) {
			fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				break
			}
			_ = syscall.Close(fd)
			if time.Now().After(deadline) {
				t.Fatalf("a process still reads %s", path)
			}
		}
	}
}

func TestTheProlog_startsTheListenerBesideTheBatchScript(t *testing.T) {
	t.Parallel()
	const (
		exporter = "export PITCHPIPE_EXPORTER=/run/e.sock\n"
		refused  = exporter + "print pitchpipe: the progress of this job is not followed: the listener is not a program that only root may write\n"
		settings = "echo BATCH=1 >slurm-env/42; chown "
	)
	for _, tt := range []struct {
		name    string
		env     []string
		prepare string
		title   string // of the task's process
		want    string
		starts  bool
	}{
		{name: "where there are no settings", want: exporter, starts: true},
		{name: "where there are settings", prepare: settings + "nobody slurm-env/42", want: exporter + "export BATCH=1\n", starts: true},
		{name: "where the settings are refused", prepare: settings + "64802 slurm-env/42", want: exporter + badFile, starts: true},
		{name: "in every attempt", env: []string{"SLURM_RESTART_COUNT=3"}, want: exporter, starts: true},
		{name: "where the batch step's daemon says so, though a step's number was inherited", title: "slurmstepd: [42.batch]", env: []string{"SLURM_STEP_ID=7", "SLURM_STEPID=7"}, want: exporter, starts: true},
		{name: "where another program runs the prolog", title: "a site's own", want: exporter, starts: true},
		{name: "not for a step", env: []string{"SLURM_STEP_ID=0", "SLURM_STEPID=0"}, want: exporter},
		{name: "not for a step by its older name", env: []string{"SLURM_STEPID=0"}, want: exporter},
		{name: "not for a step whose daemon says so", title: "slurmstepd: [42.0]", want: exporter},
		{name: "not for a step whose name ends like that of the batch step", title: "slurmstepd: [42.batch2]", want: exporter},
		{name: "not for another task", env: []string{"SLURM_PROCID=1"}, want: exporter},
		{name: "not for a job without the mark", env: []string{"PITCHPIPE_JOB="}},
		{name: "not where none is named", prepare: "sed -i /^listener/d conf", want: exporter},
		{name: "not where there is no exporter", prepare: "sed -i /^exporter/d conf"},
		{name: "not where the exporter is no path", prepare: "sed -i s,/run/,, conf"},
		{name: "not where the listener is no path", prepare: "sed -i s,^listener=.*,listener=listener, conf", want: exporter},
		{name: "not one that is not there", prepare: "rm listener", want: refused},
		{name: "not one of the controller's account", prepare: "chown nobody listener", want: refused},
		{name: "not one of the job's user", prepare: "chown 64801 listener", want: refused},
		{name: "not one that its group may write", prepare: "chmod 775 listener", want: refused},
		{name: "not one that anyone may write", prepare: "chmod 757 listener", want: refused},
		{name: "not one that the job's user may not run", prepare: "chmod 644 listener", want: refused},
		{name: "not one in a folder of another user", prepare: "chown 64802 .", want: refused},
		{name: "not one in a folder that anyone may write", prepare: "chmod 777 .", want: refused},
		{name: "not one behind a symbolic link", prepare: "mv listener real; ln -s real listener", want: refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.sh(t, "echo exporter=/run/e.sock >>conf; echo listener=$PWD/listener >>conf; "+tt.prepare)
			env := tt.env
			if tt.title != "" {
				env = append(env, "SLURM_TASK_PID="+strconv.Itoa(titled(t, tt.title)))
			}
			if diff := cmp.Diff(tt.want, s.run(t, owner, env...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			want, patience := "", 300*time.Millisecond
			if tt.starts { // and run returned: the listener holds none of the prolog's files
				want = fmt.Sprintf("args listen --slurm --socket /run/e.sock\npath /nowhere\nuid %d\nalone 1\nfiles /dev/null /dev/null /dev/null\n", owner)
				patience = time.Minute
			}
			var said []byte
			for deadline := time.Now().Add(patience); len(said) == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
				if pids := s.started(t); len(pids) > 0 {
					said, _ = os.ReadFile(filepath.Join(s.root, "said", strconv.Itoa(pids[0])))
				}
			}
			if diff := cmp.Diff(want, string(said)); diff != "" {
				t.Errorf("the listener (-want +got):\n%s", diff)
			}
		})
	}
}

// titled is a process that calls itself so.
func titled(t *testing.T, title string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep")
	cmd.Args = []string{title, "600"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// TestTheProlog_asItIsShipped denies what the stanza denies, and names no exporter or
// listener, so that an administrator's choice starts them.
func TestTheProlog_asItIsShipped(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join(plugin, "task_prolog"))
	if line := "\t\t" + strings.Join(jobfile.Denied(), " | ") + ") refuse "; !strings.Contains(string(script), line) {
		t.Errorf("task_prolog lacks the line (%v)\n%s", err, line)
	}
	conf, err := os.ReadFile(filepath.Join(plugin, "task_prolog.conf"))
	for _, name := range []string{"exporter=", "listener="} {
		if strings.Contains(string(conf), "\n"+name) || !strings.Contains(string(conf), "\n#"+name+"/") {
			t.Errorf("the shipped settings have to show %s as a comment (%v)", name, err)
		}
	}
}

// FuzzTheProlog gives it marks and settings files. Whatever they say, it exports values that
// no shell runs, to variables that the mark names, and nothing else.
func FuzzTheProlog(f *testing.F) {
	f.Add(declared, applied)
	f.Add("live:A=#|x", "# note\nA=x\n")
	f.Add(":A=;B=|", "A=a[$(id)]\nB=\n")
	f.Add(":A=#;A=y", "A=1e5\nPATH=/x\n\r")
	f.Fuzz(func(t *testing.T, mark, text string) {
		if strings.Contains(mark, "\x00") || len(mark) > 4096 || len(text) > 4096 {
			t.Skip("no such environment")
		}
		s := newSite(t)
		s.write(t, filepath.Join(s.dir, "42"), text, nobody, 0o644)
		for line := range strings.Lines(s.run(t, owner, "PITCHPIPE_JOB=2:"+mark)) {
			name, value, exported := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "export "), "\n"), "=")
			switch {
			case strings.HasPrefix(line, "print pitchpipe: "):
			case !strings.HasPrefix(line, "export ") || !exported:
				t.Errorf("%q is no line of the task prolog's", line)
			case !jobfile.IsPlain(value) || jobfile.IsDenied(name) || !strings.Contains(";"+mark, name+"="):
				t.Errorf("%q, with the mark %q", line, mark)
			}
		}
	})
}
