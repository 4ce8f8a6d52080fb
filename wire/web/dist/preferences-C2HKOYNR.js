import{a as o}from"./chunk-FPONHXTD.js";import"./chunk-MGWSFHYI.js";import"./chunk-D5XZCAHK.js";import"./chunk-BTOOL2ZJ.js";export{o as Preferences};
