import{a as o}from"./chunk-WBKZ4NKY.js";import"./chunk-4C3QJI5B.js";import"./chunk-YYCZNCAK.js";export{o as Preferences};
