import{a as o}from"./chunk-MYPOSV23.js";import"./chunk-2MB2MPON.js";import"./chunk-6ND3UTRJ.js";import"./chunk-45JOR5LA.js";export{o as Preferences};
