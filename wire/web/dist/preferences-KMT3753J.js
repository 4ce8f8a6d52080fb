import{a as o}from"./chunk-LKNGJ5KU.js";import"./chunk-4YXROTDI.js";import"./chunk-T25HULAN.js";import"./chunk-BTS5HUHD.js";export{o as Preferences};
