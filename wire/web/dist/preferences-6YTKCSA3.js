import{a as o}from"./chunk-JKROPZMD.js";import"./chunk-SSPV67PF.js";import"./chunk-3HMRJDAY.js";export{o as Preferences};
