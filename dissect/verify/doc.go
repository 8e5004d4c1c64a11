// Package verify says whether traffic is right: it follows records as they are written,
// checks them against the rules of their protocol, and keeps for each break the records
// around it.
//
// What dissect remarks on is said there, once: most rules stand on the codes of notes, and
// add no more than the sentence, its source and how severe it is. Only what takes a view
// of a whole session is code here: what must come before what, what is due by when, what
// must not come back. The rules of a protocol are a table, in the file with its name.
//
// A Checker is a dissect.Sink. It keeps nothing of a record after Write returns but what a
// Printer made of it, so that a report shows no more than the outputs do.
package verify
