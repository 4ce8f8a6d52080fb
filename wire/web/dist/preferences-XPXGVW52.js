import{a as o}from"./chunk-6QQFCOCC.js";import"./chunk-ULRCTWUT.js";import"./chunk-HIZALV3K.js";export{o as Preferences};
