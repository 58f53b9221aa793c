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

// Any two users that are neither root nor anyone who could be logged in.
const (
	owner    = 64801
	stranger = 64802
)

// site is a folder with the prolog, its configuration and the folder of settings.
type site struct {
	root, prolog, conf, dir string
}

// newSite installs the prolog as for a site whose controller runs as nobody, or with
// owner for users who run their own. It needs root, for files of several users.
func newSite(t *testing.T, own bool) site {
	t.Helper()
	if os.Getuid() != 0 {
		missing(t, "the right to make files of other users")
	}
	root := t.TempDir()
	openTo(t, root)
	s := site{root: root, prolog: filepath.Join(root, "task_prolog"), conf: filepath.Join(root, "conf"), dir: filepath.Join(root, "slurm-env")}
	src, err := os.ReadFile(filepath.Join(plugin, "task_prolog"))
	if err != nil {
		t.Fatal(err)
	}
	text := replace(t, string(src), "\nconf=/etc/pitchpipe/task_prolog.conf\n", "\nconf="+s.conf+"\n")
	text = replace(t, text, "timeout -s KILL 1 ", "timeout -s KILL 60 ") // a machine that runs tests may be slow
	s.write(t, s.prolog, text, 0, 0o755)
	conf, uid := "site_dir="+s.dir+"\nsite_user=nobody\n", nobody
	if own {
		conf, uid = "# ours\nowner_dir="+filepath.Base(s.dir), owner
	}
	s.write(t, s.conf, conf, 0, 0o644)
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(s.dir, uid, uid); err != nil {
		t.Fatal(err)
	}
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

// nobody is the account of that name on every Linux.
const nobody = 65534

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

// run runs the prolog as the job's user and returns what it prints.
func (s site) run(t *testing.T, env ...string) string {
	t.Helper()
	return s.runAs(t, owner, env...)
}

func (s site) runAs(t *testing.T, uid uint32, env ...string) string {
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

const (
	declared = ":OMP_NUM_THREADS=#;BATCH=#|adam|a,b%{x}=/:@+;WORD=sgd|adam;PATH=#;LD_PRELOAD=/x"
	applied  = "OMP_NUM_THREADS=2\nBATCH=a,b%{x}=/:@+\n"
)

func TestTheProlog(t *testing.T) {
	t.Parallel()
	const (
		notApplied = "print pitchpipe: the settings chosen for this job are not applied: "
		exported   = "export OMP_NUM_THREADS=2\nexport BATCH=a,b%{x}=/:@+\n"
	)
	tests := []struct {
		name    string
		text    string
		uid     int
		mode    os.FileMode
		env     []string
		prepare func(t *testing.T, s site)
		want    string
	}{
		{name: "exports what the controller wrote, word for word", text: applied, uid: nobody, want: exported},
		{name: "takes a last line without its end", text: "BATCH=1", uid: nobody, want: "export BATCH=1\n"},
		{name: "takes a number", text: "BATCH=-1.5e-07\n", uid: nobody, want: "export BATCH=-1.5e-07\n"},
		{name: "takes a word of the stanza", text: "WORD=sgd\n", uid: nobody, want: "export WORD=sgd\n"},
		{name: "refuses a number where the stanza has words", text: "WORD=2\n", uid: nobody, want: notApplied + "the value of WORD is no word of the stanza\n"},
		{name: "refuses a part of a word", text: "WORD=sg\n", uid: nobody, want: notApplied + "the value of WORD is no word of the stanza\n"},
		{name: "refuses two words", text: "WORD=sgd|adam\n", uid: nobody, want: notApplied + "the value of WORD has a character that no value has\n"},
		{name: "refuses the sign for numbers", text: "BATCH=#\n", uid: nobody, want: notApplied + "the value of BATCH has a character that no value has\n"},
		{name: "refuses an empty value", text: "BATCH=\n", uid: nobody, want: notApplied + "the value of BATCH is neither a number nor a word of the stanza\n"},
		{name: "refuses a word where the stanza has numbers", text: "OMP_NUM_THREADS=x\n", uid: nobody, want: notApplied + "the value of OMP_NUM_THREADS is neither a number nor a word of the stanza\n"},
		{name: "refuses two points", text: "OMP_NUM_THREADS=1.2.3\n", uid: nobody, want: notApplied + "the value of OMP_NUM_THREADS is neither a number nor a word of the stanza\n"},
		{name: "refuses an exponent without digits", text: "OMP_NUM_THREADS=1e\n", uid: nobody, want: notApplied + "the value of OMP_NUM_THREADS is neither a number nor a word of the stanza\n"},
		{name: "refuses what a shell runs as a subscript", text: "OMP_NUM_THREADS=a[$(id >pwned; echo 0)]\n", uid: nobody, want: notApplied + "the value of OMP_NUM_THREADS has a character that no value has\n"},
		{name: "sets nothing in a job that is not to be tuned", text: "", uid: nobody, env: []string{"PITCHPIPE_JOB=2::"}},
		{name: "refuses a file for a job that is not to be tuned", text: applied, uid: nobody, env: []string{"PITCHPIPE_JOB=2::"}, want: notApplied + "OMP_NUM_THREADS is not declared by the stanza\n"},
		{name: "does nothing for an empty file", text: "", uid: nobody},
		{name: "leaves at once without the mark", text: applied, uid: nobody, env: []string{"PITCHPIPE_JOB="}},
		{name: "leaves at once with the mark of another version", text: applied, uid: nobody, env: []string{"PITCHPIPE_JOB=1:BATCH:"}},
		{name: "takes no settings of another job along", text: applied, uid: nobody, env: []string{"PITCHPIPE_JOB=", "PITCHPIPE_SETTINGS=/srv/settings/41.json"}, want: "unset PITCHPIPE_SETTINGS\n"},
		{name: "leaves those of the job to its steps", text: applied, uid: nobody, env: []string{"PITCHPIPE_JOB=", "PITCHPIPE_SETTINGS=/srv/settings/42.json"}},
		{name: "leaves a file that the user named", text: applied, uid: nobody, env: []string{"PITCHPIPE_JOB=", "PITCHPIPE_SETTINGS=/home/alice/mine.json"}},
		{name: "leaves where the job has no number", text: applied, uid: nobody, env: []string{"SLURM_JOB_ID=../42"}},
		{name: "does nothing where no file stands", text: applied, uid: nobody, env: []string{"SLURM_JOB_ID=43"}},
		{name: "refuses a file of the job's own user", text: applied, uid: owner, want: notApplied + "the file is not a plain file that only the controller may write\n"},
		{name: "refuses a file of another user", text: applied, uid: stranger, want: notApplied + "the file is not a plain file that only the controller may write\n"},
		{name: "refuses a file of root", text: applied, uid: 0, want: notApplied + "the file is not a plain file that only the controller may write\n"},
		{name: "refuses a file that its group may write", text: applied, uid: nobody, mode: 0o664, want: notApplied + "the file is not a plain file that only the controller may write\n"},
		{name: "refuses a file that anyone may write", text: applied, uid: nobody, mode: 0o646, want: notApplied + "the file is not a plain file that only the controller may write\n"},
		{name: "says it once and not for each task", text: applied, uid: owner, env: []string{"SLURM_PROCID=3"}},
		{name: "says that the file cannot be read", text: applied, uid: nobody, mode: 0o600, want: notApplied + "the file cannot be read\n"},
		{name: "refuses a name that is not declared", text: "OTHER=1\n", uid: nobody, want: notApplied + "OTHER is not declared by the stanza\n"},
		{name: "refuses a part of a declared name", text: "OMP=1\n", uid: nobody, want: notApplied + "OMP is not declared by the stanza\n"},
		{name: "refuses all where one line is refused", text: "BATCH=1\nOTHER=1\n", uid: nobody, want: notApplied + "OTHER is not declared by the stanza\n"},
		{name: "refuses PATH though it is declared", text: "PATH=/x\n", uid: nobody, want: notApplied + "PATH is never set\n"},
		{name: "refuses the linker's variables though they are declared", text: "LD_PRELOAD=/x\n", uid: nobody, want: notApplied + "LD_PRELOAD is never set\n"},
		{name: "says in the output what the first line says", text: "# move to cores=2 threads=2: it saves $(time)\nBATCH=64\n", uid: nobody, want: "print pitchpipe: move to cores=2 threads=2: it saves $(time)\nexport BATCH=64\n"},
		{name: "says what it says where nothing is set", text: "# hold\n", uid: nobody, want: "print pitchpipe: hold\n"},
		{name: "says nothing in the middle", text: "BATCH=64\n# hold\n", uid: nobody, want: notApplied + "line 2 has no equals sign\n"},
		{name: "refuses a line without an equals sign", text: "BATCH\n", uid: nobody, want: notApplied + "line 1 has no equals sign\n"},
		{name: "refuses a name with a blank", text: "export BATCH=1\n", uid: nobody, want: notApplied + "line 1 does not begin with the name of a variable\n"},
		{name: "refuses a line without a name", text: "BATCH=1\n=1\n", uid: nobody, want: notApplied + "line 2 does not begin with the name of a variable\n"},
		{name: "refuses control characters", text: "BATCH=a\rb\n", uid: nobody, want: notApplied + "line 1 holds characters that are not printable ASCII\n"},
		{name: "refuses what a terminal acts on", text: "# hold \u009b31m\n", uid: nobody, want: notApplied + "line 1 holds characters that are not printable ASCII\n"},
		{name: "refuses a long file", text: strings.Repeat("BATCH=1\n", 65), uid: nobody, want: notApplied + "the file is too long\n"},
		{name: "refuses a long line", text: "BATCH=" + strings.Repeat("x", 1100), uid: nobody, want: notApplied + "the file is too long\n"},
		{
			name: "refuses a symbolic link", text: applied, uid: nobody,
			prepare: func(t *testing.T, s site) {
				t.Helper()
				path := filepath.Join(s.dir, "42")
				if err := os.Rename(path, path+".real"); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(path+".real", path); err != nil {
					t.Fatal(err)
				}
				if err := os.Lchown(path, nobody, nobody); err != nil {
					t.Fatal(err)
				}
			},
			want: notApplied + "the file is not a plain file that only the controller may write\n",
		},
		{
			name: "refuses a file that hangs who reads it", text: applied, uid: nobody,
			prepare: func(t *testing.T, s site) {
				t.Helper()
				path := filepath.Join(s.dir, "42")
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				fifo(t, path, nobody)
			},
			want: notApplied + "the file is not a plain file that only the controller may write\n",
		},
		{
			name: "gives up after a second where reading hangs", text: applied, uid: nobody,
			prepare: func(t *testing.T, s site) {
				t.Helper()
				if err := os.Remove(s.conf); err != nil {
					t.Fatal(err)
				}
				fifo(t, s.conf, 0)
				slow, err := os.ReadFile(s.prolog)
				if err != nil {
					t.Fatal(err)
				}
				s.write(t, s.prolog, replace(t, string(slow), "timeout -s KILL 60 ", "timeout -s KILL 1 "), 0, 0o755)
			},
			want: notApplied + "they could not be read within a second\n",
		},
		{
			name: "refuses a folder that others may write", text: applied, uid: nobody,
			prepare: func(t *testing.T, s site) {
				t.Helper()
				if err := os.Chmod(s.dir, 0o777); err != nil {
					t.Fatal(err)
				}
			},
			want: notApplied + "others than the controller may write its folder\n",
		},
		{
			name: "refuses a folder of another user", text: applied, uid: nobody,
			prepare: func(t *testing.T, s site) {
				t.Helper()
				if err := os.Chown(s.dir, stranger, stranger); err != nil {
					t.Fatal(err)
				}
			},
			want: notApplied + "others than the controller may write its folder\n",
		},
		{
			name: "takes a folder of root", text: applied, uid: nobody,
			prepare: func(t *testing.T, s site) {
				t.Helper()
				if err := os.Chown(s.dir, 0, 0); err != nil {
					t.Fatal(err)
				}
			},
			want: exported,
		},
		{
			name: "does nothing without its configuration", text: applied, uid: nobody,
			prepare: func(t *testing.T, s site) {
				t.Helper()
				if err := os.Remove(s.conf); err != nil {
					t.Fatal(err)
				}
			},
		},
		{
			name: "refuses where the account is not known", text: applied, uid: nobody,
			prepare: func(t *testing.T, s site) {
				t.Helper()
				s.write(t, s.conf, "site_dir="+s.dir+"\nsite_user=no-such-account\n", 0, 0o644)
			},
			want: notApplied + "the account of the controller is not known here\n",
		},
		{
			name: "names the file of live settings", text: applied, uid: nobody, env: []string{"PITCHPIPE_JOB=2:live" + declared},
			prepare: func(t *testing.T, s site) {
				t.Helper()
				s.write(t, filepath.Join(s.dir, "42.json"), "{}", nobody, 0o644)
			},
			want: exported + "export PITCHPIPE_SETTINGS=DIR/42.json\n",
		},
		{
			name: "refuses a file of live settings of another user", text: applied, uid: nobody, env: []string{"PITCHPIPE_JOB=2:live" + declared},
			prepare: func(t *testing.T, s site) {
				t.Helper()
				s.write(t, filepath.Join(s.dir, "42.json"), "{}", stranger, 0o644)
			},
			want: notApplied + "the file of live settings is not a plain file that only the controller may write\n",
		},
		{
			name: "names no file of live settings to a job without live knobs", text: applied, uid: nobody,
			prepare: func(t *testing.T, s site) {
				t.Helper()
				s.write(t, filepath.Join(s.dir, "42.json"), "{}", nobody, 0o644)
			},
			want: exported,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, false)
			if tt.mode == 0 {
				tt.mode = 0o644
			}
			s.write(t, filepath.Join(s.dir, "42"), tt.text, tt.uid, tt.mode)
			if tt.prepare != nil {
				tt.prepare(t, s)
			}
			if diff := cmp.Diff(strings.ReplaceAll(tt.want, "DIR", s.dir), s.run(t, tt.env...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheProlog of owner mode: the folder and the file are the job's own user's.
func TestTheProlog_ofAUserWithAControllerOfHisOwn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		uid  int
		want string
	}{
		{owner, "export BATCH=1\n"},
		{stranger, "print pitchpipe: the settings chosen for this job are not applied: the file is not a plain file that only the controller may write\n"},
		{nobody, "print pitchpipe: the settings chosen for this job are not applied: the file is not a plain file that only the controller may write\n"},
	} {
		t.Run(strconv.Itoa(tt.uid), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, true)
			s.write(t, filepath.Join(s.dir, "42"), "BATCH=1\n", tt.uid, 0o644)
			if diff := cmp.Diff(tt.want, s.run(t)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheProlog_offAndRoot: what the owner switched off, and root's jobs, are left alone
// whatever the account of the controller wrote.
func TestTheProlog_offAndRoot(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	home := filepath.Join(s.root, "own")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(t, s.conf, "site_dir="+s.dir+"\nsite_user=nobody\nowner_dir=own\n", 0, 0o644)
	s.write(t, filepath.Join(s.dir, "42"), "BATCH=64\n", nobody, 0o644)
	array := []string{"SLURM_ARRAY_JOB_ID=40", "SLURM_ARRAY_TASK_ID=3"}
	for _, tt := range []struct {
		name, off string
		uid       uint32
		env       []string
		want      string
	}{
		{"a job that is on", "43.off", owner, nil, "export BATCH=64\n"},
		{"a job that is off", "42.off", owner, nil, ""},
		{"an array's task that is off", "40_3.off", owner, array, ""},
		{"an array that is off", "40.off", owner, array, ""},
		{"another task of it", "40_4.off", owner, array, "export BATCH=64\n"},
		{"a job of root", "43.off", 0, nil, ""},
	} {
		path := filepath.Join(home, tt.off)
		s.write(t, path, "", owner, 0o644)
		if got := s.runAs(t, tt.uid, tt.env...); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheProlog_deniesWhatTheStanzaDenies: the script's list is the table's.
func TestTheProlog_deniesWhatTheStanzaDenies(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join(plugin, "task_prolog"))
	if err != nil {
		t.Fatal(err)
	}
	if line := "\t\t" + strings.Join(jobfile.Denied(), " | ") + ") refuse "; !strings.Contains(string(script), line) {
		t.Errorf("task_prolog lacks the line\n%s", line)
	}
}

// TestTheProlog_takesTheSiteFirst has both folders and a file in each.
func TestTheProlog_takesTheSiteFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	home := filepath.Join(s.root, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, owner, owner); err != nil {
		t.Fatal(err)
	}
	s.write(t, s.conf, fmt.Sprintf("site_dir=%s\nsite_user=nobody\nowner_dir=%s\n", s.dir, "home"), 0, 0o644)
	s.write(t, filepath.Join(home, "42"), "BATCH=adam\n", owner, 0o644)
	if diff := cmp.Diff("export BATCH=adam\n", s.run(t)); diff != "" {
		t.Errorf("the user's own alone (-want +got):\n%s", diff)
	}
	s.write(t, filepath.Join(s.dir, "42"), "BATCH=64\n", nobody, 0o644)
	if diff := cmp.Diff("export BATCH=64\n", s.run(t)); diff != "" {
		t.Errorf("both (-want +got):\n%s", diff)
	}
}

// fifo makes a pipe that blocks who opens it for reading; the test's end opens it.
func fifo(t *testing.T, path string, uid int) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, uid, uid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Nobody may be left waiting: a process that waited would be seen here.
		deadline := time.Now().Add(30 * time.Second)
		for {
			fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				return // no reader
			}
			_ = syscall.Close(fd)
			if time.Now().After(deadline) {
				t.Errorf("somebody still reads %s", path)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
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
		s := newSite(t, false)
		s.write(t, filepath.Join(s.dir, "42"), text, nobody, 0o644)
		for line := range strings.Lines(s.run(t, "PITCHPIPE_JOB=2:"+mark)) {
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
