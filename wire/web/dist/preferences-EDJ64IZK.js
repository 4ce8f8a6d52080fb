import{a as o}from"./chunk-UHGZTIY7.js";import"./chunk-DV5QANLE.js";import"./chunk-DYHP2VQW.js";export{o as Preferences};
