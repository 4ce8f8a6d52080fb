import{a as o}from"./chunk-TA2DC3BP.js";import"./chunk-7JPOLBY6.js";import"./chunk-BQJJFHAK.js";export{o as Preferences};
