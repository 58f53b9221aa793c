// Package figure draws what policies made of a log of jobs, a curve for each: how many jobs waited and were done within
// a time, and how many ran and waited over time. And it draws the terms of a model of durations: a bar for each level,
// whose length is the factor on the duration. Output: sheets of controller/report/picture. It is pure.
package figure
