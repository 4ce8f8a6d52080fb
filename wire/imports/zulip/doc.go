// Package zulip reads exports of Zulip servers, and of the converters that write Zulip's format, as records of package
// imports.
//
// realm.json is read once, table by table: the small tables are in memory, reactions go to a sorter. The files of
// messages are read one after the other, each with the flags of its messages; flags beyond a limit go to a sorter, too.
// Unknown tables and fields are left out; tables that have data without a place in Parley are counted as dropped.
package zulip
