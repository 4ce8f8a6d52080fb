import{a as o}from"./chunk-T5WMNVFA.js";import"./chunk-233ZLZJV.js";import"./chunk-U3MWWF3B.js";import"./chunk-NIPK5IKA.js";export{o as Privacy};
