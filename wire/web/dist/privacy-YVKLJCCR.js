import{a as o}from"./chunk-LHNFYYXJ.js";import"./chunk-OSMKZJUA.js";import"./chunk-QPO4DF6R.js";import"./chunk-N76PAOFV.js";export{o as Privacy};
